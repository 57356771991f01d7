"""Accuracy on fifty classes of photographs, learned one after another with replay.

The weights (ImageNet) and the photographs (Caltech) are in `../shared` (or LRTFLITE_SHARED). A
third of each class is held out. The first session has 10 classes, each later one has one class,
with two visits per class. The memory is 1000; all other options are defaults of `lrtflite
simulate`. A linear probe on all frames at once reaches 0.95.

    python benchmarks/photographs.py [--seeds 0 1 2] [--bundle BUNDLE]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from bundles import IMAGENET, PHOTOGRAPHS, lrtflite

from lrtflite.errors import DataError, LrtfliteError
from lrtflite.options import LearnerOptions
from lrtflite_firmware_sim import SimulateOptions, Simulation, simulate
from lrtflite_firmware_sim.watcher import watch

TARGET = 0.92


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--bundle", type=Path, help="bundle to use, instead of a new one")
    arguments = parser.parse_args()
    try:
        results = run(arguments.seeds, arguments.bundle)
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")
    print(table(results))


def run(seeds: list[int], bundle: Path | None) -> list[Simulation]:
    for needed in (IMAGENET, PHOTOGRAPHS):
        if not needed.exists():
            raise DataError(f"Expected {needed}, which does not exist", "set LRTFLITE_SHARED")
    with ExitStack() as stack:
        if bundle is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            bundle = convert(IMAGENET, folder / "bundle")
        return [
            simulate(
                bundle,
                SimulateOptions(
                    dataset=f"folder:{PHOTOGRAPHS}",
                    learner=LearnerOptions(replay_size=1000, seed=seed),
                ),
                watcher=watch(),
            )
            for seed in seeds
        ]


def convert(weights: Path, out: Path) -> Path:
    words = ["convert", "--replay-layer", "pool6", "--weights", str(weights)]
    words += ["--classes", "50", "--out", str(out)]
    lrtflite(words)
    return out


def table(results: list[Simulation]) -> str:
    lines = [f"{'seed':>4}  {'final':>6}  {'forgetting':>10}  {'mean over sessions, seen':>24}"]
    for result in results:
        seen = float(np.mean([session.accuracy_seen for session in result.per_session]))
        lines.append(
            f"{result.seed:>4}  {result.final_accuracy:6.3f}  {result.forgetting:10.3f}"
            f"  {seen:24.3f}"
        )
    mean = float(np.mean([result.final_accuracy for result in results]))
    first = results[0]
    lines += [
        f"mean  {mean:6.3f}  (target at least {TARGET})",
        f"{first.sessions} sessions, {first.test_frames} test photographs, {first.replay_size} "
        f"latents, {first.policy}, {first.training['epochs']} epochs, lr {first.training['lr']:g}",
        f"{first.versions['runtime']}, {first.threads} thread, on {first.machine}",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
