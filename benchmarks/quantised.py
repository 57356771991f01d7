"""Int8 features against float ones: accuracy of whole streams, size and time of extraction.

The streams are the photographs of replay_layers.py, with ImageNet weights (`../shared`). Each seed
holds out another third of each class. Calibration frames are photographs that no seed holds out.

    python benchmarks/quantised.py accuracy [--seeds 0 1 2 3 4] [--layer pool6] [--modes int8 qat]
    python benchmarks/quantised.py times
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from bundles import BUILD, PHOTOGRAPHS, converted
from intervals import shown
from replay_layers import CASES
from worlds import World, extract

from lrtflite import Bundle, Learner, LrtfliteError
from lrtflite.data import open_source
from lrtflite.runtime.model import Model, describe_runtime, pick_runtime
from lrtflite.system.machine import this_machine
from lrtflite.workbench.metrics import accuracy

CASE = CASES["photographs"]
FLOAT, SIZE, SEEDS = "float", 128, (0, 1, 2, 3, 4)
STRATEGIES = {"pool6": ("cwr", "lda")}
# Pairs of calls that are timed, after some that are not.
WARM, ROUNDS = 20, 300


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", choices=["accuracy", "times"])
    parser.add_argument("--layer", default="pool6")
    parser.add_argument("--strategies", nargs="+")
    parser.add_argument("--modes", nargs="+", default=["int8", "qat"])
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--runtime", default="auto")
    arguments = parser.parse_args()
    try:
        table = {"accuracy": accuracies, "times": times}[arguments.table]
        for line in table(arguments):
            print(line, flush=True)
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")
    print(f"{describe_runtime(pick_runtime(arguments.runtime))}, 1 thread, on {this_machine()}")


def calibration_folder() -> Path:
    """Return a folder with links to the photographs that are in the training part of every seed."""
    folder = BUILD / "quantised/calibration"
    if not folder.exists():
        sources = [open_source(CASE.dataset, size=SIZE, seed=seed) for seed in SEEDS]
        kept = set.intersection(*({clip.name for clip in each.train_clips()} for each in sources))
        for name in sorted(kept):
            link = folder / name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(PHOTOGRAPHS / name)
    return folder


def bundle_of(layer: str, strategy: str, mode: str) -> Bundle:
    words = ["--replay-layer", layer, "--weights", CASE.weights, "--strategy", strategy]
    name = f"quantised/{layer.replace('/', '-')}-{strategy}-{mode}"
    if mode != FLOAT:
        words += ["--quantize", mode, "--calibrate", f"folder:{calibration_folder()}"]
    return Bundle.open(converted(name, words))


def accuracies(arguments: argparse.Namespace) -> Iterator[str]:
    layer = arguments.layer
    strategies = arguments.strategies or STRATEGIES.get(layer, ("ar1free",))
    yield "| strategy | features | accuracy by seed | mean | points against float | dB |"
    yield "| --- | --- | --- | --- | --- | --- |"
    worlds: dict[tuple[str, int], World] = {}
    for strategy in strategies:
        base: list[float] = []
        for mode in (FLOAT, *arguments.modes):
            bundle = bundle_of(layer, strategy, mode)
            found = []
            for seed in arguments.seeds:
                # Features do not depend on the strategy.
                if (mode, seed) not in worlds:
                    worlds[mode, seed] = extract(
                        bundle, CASE.dataset, seed=seed, visits=2, runtime=arguments.runtime
                    )
                found.append(learn(bundle, worlds[mode, seed], seed, arguments.runtime))
            base = base or found
            quantised = bundle.manifest.quantisation
            decibels = "" if quantised is None else f"{quantised.snr_db:.1f}"
            difference = "" if quantised is None else points(found, base)
            by_seed = " ".join(f"{value:.3f}" for value in found)
            yield (
                f"| {strategy} | {mode} | {by_seed} | {np.mean(found):.4f} | {difference} "
                f"| {decibels} |"
            )


def points(found: list[float], base: list[float]) -> str:
    """Return the mean difference in points, with its interval if there are several seeds."""
    return shown(found, base) if len(found) > 1 else f"{100 * (found[0] - base[0]):+.1f}"


def learn(bundle: Bundle, world: World, seed: int, runtime: str) -> float:
    """Return accuracy after the last session."""
    started = time.perf_counter()
    replay_size = CASE.memory if bundle.manifest.feeding.replays else 0
    with Learner.open(bundle, runtime=runtime, replay_size=replay_size, seed=seed) as learner:
        for latents, labels in world.sessions:
            learner.learn_latents(latents, slot=labels)
        answers = learner.probabilities(world.test).argmax(axis=1)
    found = accuracy(answers, world.test_labels)
    took = time.perf_counter() - started
    print(f"{bundle.path.name} seed {seed}: {found:.4f}, {took:.0f} s", file=sys.stderr, flush=True)
    return found


def times(arguments: argparse.Namespace) -> Iterator[str]:
    """Time one frame, float and int8 in turns.

    It is CPU time of the one thread, because other processes may interrupt it.
    """
    strategy = STRATEGIES["pool6"][1]
    bundles = {mode: bundle_of("pool6", strategy, mode) for mode in (FLOAT, "int8")}
    models = {
        mode: Model(bundle.features, runtime=arguments.runtime, threads=1)
        for mode, bundle in bundles.items()
    }
    size = bundles[FLOAT].manifest.input_size
    frames = np.random.default_rng(0).integers(0, 256, (1, size, size, 3)).astype(np.uint8)
    took: dict[str, list[float]] = {mode: [] for mode in models}
    for _ in range(WARM + ROUNDS):
        for mode, model in models.items():
            started = time.thread_time()
            model.run("extract", frames=frames)
            took[mode].append(1e3 * (time.thread_time() - started))
    base = np.array(took[FLOAT][WARM:])
    yield "| features | bytes | ms of CPU time: median, p95 | relative to float, median of pairs |"
    yield "| --- | --- | --- | --- |"
    for mode, values in took.items():
        mine, stored = np.array(values[WARM:]), bundles[mode].features.path.stat().st_size
        yield (
            f"| {mode} | {stored:,} | {np.median(mine):.2f}, {np.percentile(mine, 95):.2f} "
            f"| {np.median(mine / base):.2f} |"
        )


if __name__ == "__main__":
    main()
