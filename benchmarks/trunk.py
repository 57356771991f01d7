"""A trunk that trains against the last layer alone: accuracy and seconds, for each kind of both.

The streams are those of replay_layers.py: photographs, synthetic (drawn videos, demo backbone) and
shifted (drawn videos, ImageNet weights), fifty classes in 91 sessions; `--one-by-one` teaches
twelve classes of twenty frames, a session each, from nothing. A row is a layer and a strategy;
`pool6` has the strategy's form without a trunk. Seconds are from the last latent to the state in
RAM, median and p95 of sessions after the first ten, with one thread. `--rate` changes rates, so
that accuracy can be compared with seconds. Rates were chosen on worlds 1000 and 1001.

    python benchmarks/trunk.py shifted --rows pool6:lda conv5_4/dw:lda --seeds 2000 2001 2002
    python benchmarks/trunk.py shifted --rows conv5_4/dw:lda --one-by-one --draws 3
    python benchmarks/trunk.py shifted --rows conv5_4/dw:lda --seeds 1000 1001 \\
        --rate least_steps=4 --rate most_steps=4
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from closed_form import CLASSES, ONE_BY_ONE, PICTURES, bundle_of
from replay_layers import CASES
from worlds import World, extract

from lrtflite import Bundle, Learner, LrtfliteError
from lrtflite.runtime.model import describe_runtime, pick_runtime
from lrtflite.system.machine import this_machine
from lrtflite.workbench.metrics import accuracy

# Sessions that are left out of the times: the memory is small in them.
WARM_UP = 10


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--rows", nargs="+", default=["pool6:lda", "conv5_4/dw:lda"])
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument("--one-by-one", action="store_true")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--validation", action="store_true", help="judge a quarter of the training")
    parser.add_argument("--rate", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--replay-size", type=int)
    parser.add_argument("--runtime", default="auto")
    arguments = parser.parse_args()
    try:
        for row in arguments.rows:
            layer, _, strategy = row.partition(":")
            bundle = bundle_of(CASES[arguments.case], layer, strategy)
            judge = one_by_one if arguments.one_by_one else streams
            print(f"{arguments.case} {row}: {judge(bundle, arguments)}", flush=True)
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")
    print(f"{describe_runtime(pick_runtime(arguments.runtime))}, 1 thread, on {this_machine()}")


def streams(bundle: Bundle, arguments: argparse.Namespace) -> str:
    case, found = CASES[arguments.case], []
    seconds: list[float] = []
    for seed in arguments.seeds or case.seeds:
        world = extract(bundle, case.dataset, seed=seed, visits=2, runtime=arguments.runtime)
        world = world.validation() if arguments.validation else world
        right, took = learn(bundle, world, arguments, seed=seed)
        found.append(right)
        seconds += took[WARM_UP:]
        print(f"seed {seed}: {right:.3f}, {np.median(took):.2f} s", file=sys.stderr, flush=True)
    return (
        f"{' '.join(f'{value:.3f}' for value in found)}, mean {np.mean(found):.3f}; "
        f"session {np.median(seconds):.3f} s, p95 {np.percentile(seconds, 95):.3f}"
    )


def one_by_one(bundle: Bundle, arguments: argparse.Namespace) -> str:
    case = CASES[arguments.case]
    (seed,) = arguments.seeds or (ONE_BY_ONE[arguments.case],)
    world = extract(bundle, case.dataset, seed=seed, visits=1, runtime=arguments.runtime)
    train = np.concatenate([latents for latents, _ in world.sessions])
    slots = np.concatenate([labels for _, labels in world.sessions])
    truth, found = np.array(world.test_labels), []
    for draw in range(arguments.draws):
        chosen = np.random.default_rng(draw).permutation(len(np.unique(truth)))[:CLASSES]
        judged = np.isin(truth, chosen)
        part = World(
            [(train[slots == slot][:PICTURES], [int(slot)] * PICTURES) for slot in chosen],
            world.test[judged],
            truth[judged].tolist(),
        )
        found.append(learn(bundle, part, arguments, seed=0)[0])
    return f"{' '.join(f'{value:.3f}' for value in found)}, mean {np.mean(found):.3f}"


def learn(
    bundle: Bundle, world: World, arguments: argparse.Namespace, *, seed: int
) -> tuple[float, list[float]]:
    """Return accuracy after the last session, and the seconds of each session."""
    case, took = CASES[arguments.case], []
    size = case.memory if arguments.replay_size is None else arguments.replay_size
    replays = bundle.manifest.replay_size > 0
    rates = {name: float(value) for name, value in (r.split("=") for r in arguments.rate)}
    whole = {name: int(value) if value.is_integer() else value for name, value in rates.items()}
    with Learner.open(
        bundle,
        runtime=arguments.runtime,
        replay_size=size if replays else 0,
        seed=seed,
        threads=1,
    ) as learner:
        training = learner.training.with_options(**whole)
        for latents, labels in world.sessions:
            kept = latents[: len(labels)]
            report = learner.learn_latents(kept, slot=labels[: len(kept)], training=training)
            took.append(report.ready_to_committed_ms / 1e3)
        answers = learner.probabilities(world.test).argmax(axis=1)
    return accuracy(answers, world.test_labels), took


if __name__ == "__main__":
    main()
