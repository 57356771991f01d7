"""Every strategy with and without replay, on the streams of replay_layers.py.

Fifty classes: ten in the first session, then one class in each of 90 sessions, two visits each.
Accuracy after the last session over the whole test set; forgetting, the mean over classes of the
best accuracy after any tenth session minus the last; milliseconds of a session, in the median, from
the last latent to the state on disk; the bytes of the head's tensors; and the peak RAM of a learner
with a full memory, in a process of its own, as `convert` measured it. Strategies without replay
keep no latents.

    python benchmarks/strategies.py synthetic|photographs|shifted [--layer pool6] [--seeds 2000 ...]
        [--network mobilenet_v2]
    python benchmarks/strategies.py synthetic --only cwr --preset paper
    python benchmarks/strategies.py synthetic --only ewc --rate penalty=1000 --seeds 1000 1001
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
from bundles import WEIGHTS
from closed_form import bundle_of
from replay_layers import CASES, Case
from worlds import World, extract

from lrtflite import Bundle, Learner, LrtfliteError
from lrtflite.networks.architecture import NETWORKS
from lrtflite.runtime.model import describe_runtime, pick_runtime
from lrtflite.system.machine import this_machine
from lrtflite.workbench.metrics import accuracy, class_accuracy
from lrtflite_cli.options.rates import chosen_rates

AT_LAST = ("cwr", "ewc", "lwf", "naive", "lda", "dslda", "ncm")
ABOVE = ("ar1free", "ar1", "ewc", "lwf", "naive", "lda")
# Strategies that never replay.
CLOSED = ("lda", "dslda", "ncm")
# Sessions between two tests of forgetting.
EVERY = 10


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--network", choices=WEIGHTS, default="mobilenet_v1")
    parser.add_argument("--layer", help="[the last layer below the classifier]")
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument(
        "--validation", action="store_true", help="test on a quarter of the training frames"
    )
    parser.add_argument("--preset", help="of `lrtflite convert`, such as paper")
    parser.add_argument("--rate", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--runtime", default="auto")
    arguments = parser.parse_args()
    last = NETWORKS[arguments.network].pooled
    layer = arguments.layer or last
    pooled = layer == last
    names = arguments.only or (AT_LAST if pooled else ABOVE)
    worlds: dict[int, World] = {}
    titles = (
        "strategy, replay, accuracy by seed, mean, forgetting, session (ms), state (MB), RAM (MB)"
    )
    print(f"| {titles.replace(',', ' |')} |")
    print(f"|{' --- |' * len(titles.split(','))}")
    try:
        case = CASES[arguments.case].of_network(arguments.network)
        for name in names:
            bundle = bundle_of(case, layer, name, preset=arguments.preset)
            never = pooled and name in CLOSED
            always = not pooled and name in CLOSED
            for size in (0,) if never else (case.memory,) if always else (case.memory, 0):
                print(row(bundle, case, size, worlds, arguments), flush=True)
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")
    print(f"{describe_runtime(pick_runtime(arguments.runtime))}, 1 thread, on {this_machine()}")


def row(
    bundle: Bundle,
    case: Case,
    size: int,
    worlds: dict[int, World],
    arguments: argparse.Namespace,
) -> str:
    found, lost, took, state = [], [], [], 0
    for seed in arguments.seeds or case.seeds:
        if seed not in worlds:
            world = extract(bundle, case.dataset, seed=seed, visits=2, runtime=arguments.runtime)
            worlds[seed] = world.validation() if arguments.validation else world
        right, forgotten, milliseconds, state = learn(bundle, worlds[seed], size, seed, arguments)
        found.append(right)
        lost.append(forgotten)
        took.append(milliseconds)
    seeds = " ".join(f"{value:.3f}" for value in found)
    measured = bundle.manifest.measured
    ram = "not measured" if measured is None else f"{measured.ram_mb:.0f}"
    return (
        f"| {bundle.manifest.strategy} | {size} | {seeds} | {np.mean(found):.3f} | "
        f"{np.mean(lost):.3f} | {np.median(took):.1f} | {state / 1e6:.2f} | {ram} |"
    )


def learn(
    bundle: Bundle, world: World, size: int, seed: int, arguments: argparse.Namespace
) -> tuple[float, float, float, int]:
    """Return accuracy, forgetting, the median session in ms, and bytes of the head's tensors."""
    rates = chosen_rates({"epochs": None, "lr": None, "rate": arguments.rate})
    classes, history, took = bundle.manifest.slots, [], []
    with (
        tempfile.TemporaryDirectory(dir=Path.cwd()) as folder,
        Learner.open(
            bundle, folder, runtime=arguments.runtime, replay_size=size, seed=seed, threads=1
        ) as learner,
    ):
        training = learner.training.with_options(**rates)
        for number, (latents, labels) in enumerate(world.sessions, start=1):
            report = learner.learn_latents(latents, slot=labels, training=training)
            took.append(report.ready_to_committed_ms)
            if number % EVERY == 0 or number == len(world.sessions):
                answers = learner.probabilities(world.test).argmax(axis=1)
                history.append(class_accuracy(answers, world.test_labels, classes=classes))
        arrays = learner.snapshot().arrays
    state = sum(each.nbytes for name, each in arrays.items() if not name.startswith("memory/"))
    best = np.nanmax(np.stack(history), axis=0)
    forgotten = float(np.nanmean(best - history[-1]))
    return accuracy(answers, world.test_labels), forgotten, float(np.median(took)), state


if __name__ == "__main__":
    main()
