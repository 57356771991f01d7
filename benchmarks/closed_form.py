"""Closed forms against CWR*: accuracy, confidence and session time on the same streams.

- photographs: fifty classes of Caltech photographs, ImageNet weights (`../shared`);
- synthetic: the drawn videos with the demo backbone;
- shifted: the drawn videos with the ImageNet weights, which have never seen a drawing;
- one by one: twelve classes of twenty frames, a session each, from nothing (six draws).

The streams are those of replay_layers.py and few_pictures.py. Temperatures and tolerances were
chosen on the validation split of the photographs and on worlds 1000 and 1001.

    python benchmarks/closed_form.py photographs [--seeds 0 1 2] [--network mobilenet_v2]
    python benchmarks/closed_form.py few     # twelve classes of 3, 6, 12 and 20 frames, validation
    python benchmarks/closed_form.py times
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from bundles import WEIGHTS, converted
from replay_layers import CASES, Case
from worlds import World, extract

from lrtflite import Bundle, Learner, LrtfliteError
from lrtflite.networks.architecture import NETWORKS
from lrtflite.runtime.model import describe_runtime, pick_runtime
from lrtflite.system.machine import this_machine
from lrtflite.workbench.metrics import accuracy

ONE_BY_ONE = {"photographs": 0, "shifted": 1000, "synthetic": 1000}  # seed of the data set
DRAWS, CLASSES, PICTURES = 6, 12, 20
# Frames of each class where there are few, and the first draw of validation.
FEW, VALIDATION = (3, 6, 12, 20), 100
# Layer below the last one whose average is compared with the last one.
POOLED = {"mobilenet_v1": "conv5_6/sep", "mobilenet_v2": "block_16"}
# Sessions until the memory of CWR* is full, and those that are timed.
FILLING, ROUNDS = 60, 30


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("case", choices=[*CASES, "few", "times"])
    parser.add_argument("--network", choices=WEIGHTS, default="mobilenet_v1")
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument("--validation", action="store_true", help="judge a quarter of the training")
    parser.add_argument("--runtime", default="auto")
    arguments = parser.parse_args()
    try:
        table = {"times": times, "few": few}.get(arguments.case, rows)
        for line in table(arguments):
            print(line, flush=True)
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")
    print(f"{describe_runtime(pick_runtime(arguments.runtime))}, 1 thread, on {this_machine()}")


def bundle_of(case: Case, layer: str, strategy: str, *, preset: str | None = None) -> Bundle:
    words = [*case.words(layer), "--strategy", strategy]
    words += ["--pooled"] if layer == POOLED[case.network] else []
    name = f"closed-form/{case.name(layer)}-{strategy}"
    if preset is not None:
        words, name = [*words, "--preset", preset], f"{name}-{preset}"
    return Bundle.open(converted(name, words))


def table_rows(network: str) -> list[tuple[str, str]]:
    """Return layers and strategies: the latents of a layer serve several strategies."""
    last, pooled = NETWORKS[network].pooled, POOLED[network]
    return [(last, "cwr"), (last, "lda"), (last, "ncm"), (pooled, "lda"), (pooled, "ncm")]


def rows(arguments: argparse.Namespace) -> Iterator[str]:
    case = CASES[arguments.case].of_network(arguments.network)
    seeds = arguments.seeds or case.seeds
    yield "| layer, strategy | accuracy by seed | mean | confidence | one by one, six draws |"
    yield "| --- | --- | --- | --- | --- |"
    worlds: dict[tuple[str, int], World] = {}
    for layer, strategy in table_rows(case.network):
        bundle = bundle_of(case, layer, strategy)
        found, sure = [], []
        for seed in seeds:
            if (layer, seed) not in worlds:
                world = extract(
                    bundle, case.dataset, seed=seed, visits=2, runtime=arguments.runtime
                )
                worlds[layer, seed] = world.validation() if arguments.validation else world
            right, confidence = learn(bundle, worlds[layer, seed], case.memory, seed, arguments)
            found.append(right)
            sure.append(confidence)
        single = one_by_one(bundle, case, ONE_BY_ONE[arguments.case], arguments)
        name = f"{layer}{', pooled' if layer == POOLED[case.network] else ''}, {strategy}"
        shown = " ".join(f"{value:.3f}" for value in found)
        yield f"| {name} | {shown} | {np.mean(found):.3f} | {np.mean(sure):.3f} | {single:.3f} |"


def learn(
    bundle: Bundle, world: World, memory: int, seed: int, arguments: argparse.Namespace
) -> tuple[float, float]:
    """Return accuracy after the last session, and the mean probability of the answer."""
    replay_size = memory if bundle.manifest.feeding.replays else 0
    with Learner.open(
        bundle, runtime=arguments.runtime, replay_size=replay_size, seed=seed
    ) as learner:
        for latents, labels in world.sessions:
            learner.learn_latents(latents, slot=labels)
        probabilities = learner.probabilities(world.test)
    right = accuracy(probabilities.argmax(axis=1), world.test_labels)
    return right, float(probabilities.max(axis=1).mean())


def one_by_one(bundle: Bundle, case: Case, seed: int, arguments: argparse.Namespace) -> float:
    """Return the mean accuracy of draws of classes, each taught in its own session."""
    world = extract(bundle, case.dataset, seed=seed, visits=1, runtime=arguments.runtime)
    return float(np.mean(draws(bundle, world, PICTURES, arguments)))


def draws(
    bundle: Bundle, world: World, pictures: int, arguments: argparse.Namespace, *, first: int = 0
) -> list[float]:
    """Teach classes drawn at random, `pictures` frames each; return the accuracy of each draw."""
    train = np.concatenate([latents for latents, _ in world.sessions])
    slots = np.concatenate([labels for _, labels in world.sessions])
    truth = np.array(world.test_labels)
    found = []
    for draw in range(first, first + DRAWS):
        chosen = np.random.default_rng(draw).permutation(len(np.unique(truth)))[:CLASSES]
        with Learner.open(bundle, runtime=arguments.runtime) as learner:
            for slot in chosen:
                learner.learn_latents(train[slots == slot][:pictures], slot=int(slot))
            judged = np.isin(truth, chosen)
            answers = learner.probabilities(world.test[judged]).argmax(axis=1)
        found.append(float((answers == truth[judged]).mean()))
    return found


def few(arguments: argparse.Namespace) -> Iterator[str]:
    """Compare lda and ncm where classes have few frames, on validation streams."""
    yield f"| case | strategy | {' | '.join(f'{count} frames' for count in FEW)} |"
    yield f"| --- | --- |{' --- |' * len(FEW)}"
    for name, case in CASES.items():
        for strategy in ("lda", "ncm"):
            bundle = bundle_of(case, "pool6", strategy)
            seed = 0 if name == "photographs" else 1000
            world = extract(bundle, case.dataset, seed=seed, visits=1, runtime=arguments.runtime)
            world = world.validation() if name == "photographs" else world
            found = [
                np.mean(draws(bundle, world, count, arguments, first=VALIDATION)) for count in FEW
            ]
            yield f"| {name} | {strategy} | {' | '.join(f'{value:.3f}' for value in found)} |"


def times(arguments: argparse.Namespace) -> Iterator[str]:
    """Compare a session of 25 frames at alpha 1.0, in turns, from the last latent to the disk."""
    case = CASES["photographs"]
    bundles = {name: bundle_of(case, "pool6", name) for name in ("cwr", "lda", "ncm")}
    rng = np.random.default_rng(0)
    centres = rng.gamma(1.0, 0.8, (20, 1024))
    took: dict[str, list[float]] = {name: [] for name in bundles}
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        learners = {
            name: Learner.open(bundle, Path(folder) / name, runtime=arguments.runtime, threads=1)
            for name, bundle in bundles.items()
        }
        for number in range(FILLING + ROUNDS):
            slot = number % len(centres)
            noise = rng.gamma(2.0, 0.5, (25, 1024))
            latents = np.clip(centres[slot] * noise, 0, 6).astype(np.float32)
            for name, learner in learners.items():
                report = learner.learn_latents(latents, slot=slot)
                took[name].append(report.ready_to_committed_ms)
        for learner in learners.values():
            learner.close()
    base = np.array(took["cwr"][FILLING:])
    yield "| strategy | session, ms: median, p95 | relative to cwr, median of pairs |"
    yield "| --- | --- | --- |"
    for name, values in took.items():
        mine = np.array(values[FILLING:])
        ratio = np.median(mine / base)
        yield f"| {name} | {np.median(mine):.1f}, {np.percentile(mine, 95):.1f} | {ratio:.2f} |"


if __name__ == "__main__":
    main()
