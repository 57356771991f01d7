"""Does a device forget what it shipped with? Ten classes of photographs shipped, five more taught.

In each draw fifteen classes are chosen, ten to ship and five to come. `teach` makes the bundle that
ships; a new learner opens it and is taught the five one by one. Held-out photographs of the ten are
tested before and after.

    python benchmarks/shipped.py BUNDLE [--draws 0 1 2] [--photographs FOLDER]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from bundles import PHOTOGRAPHS, say

from lrtflite import Learner
from lrtflite.data import FrameSource, open_source, whole_batch
from lrtflite.errors import LrtfliteError
from lrtflite.machine import this_machine
from lrtflite.runtime import describe_runtime
from lrtflite.teaching import recognise, teach

SHIPPED, LATER = 10, 5


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("bundle", type=Path, help="one that has been taught nothing")
    parser.add_argument("--draws", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--photographs", type=Path, default=PHOTOGRAPHS)
    arguments = parser.parse_args()
    print("| draw | shipped | shipped, after five more | the five |\n| --- | --- | --- | --- |")
    rows = []
    try:
        for draw in arguments.draws:
            rows.append(run(arguments.bundle, arguments.photographs, draw))
            print(f"| {draw} | {cells(rows[-1])} |", flush=True)
        with Learner.open(arguments.bundle) as learner:
            runtime = describe_runtime(learner.runtime)
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")
    print(f"| mean | {cells(np.mean(rows, axis=0).tolist())} |")
    print(f"\n{runtime}, 1 thread, {this_machine()}")


def cells(row: Sequence[float]) -> str:
    return " | ".join(f"{value:.3f}" for value in row)


def run(bundle: Path, photographs: Path, draw: int) -> tuple[float, float, float]:
    """Accuracy on the shipped classes before and after, and on the later ones."""
    names = sorted(path.name for path in photographs.iterdir() if path.is_dir())
    chosen = np.random.default_rng(draw).permutation(len(names))[: SHIPPED + LATER]
    with tempfile.TemporaryDirectory() as folder, Learner.open(bundle, seed=draw) as desk:
        size = desk.bundle.manifest.input_size
        old = part(photographs, [names[i] for i in chosen[:SHIPPED]], Path(folder) / "old", size)
        new = part(photographs, [names[i] for i in chosen[SHIPPED:]], Path(folder) / "new", size)
        shipped = teach(desk, old, Path(folder) / "bundle")
        say(f"draw {draw}: {shipped.report.frames} photographs, {shipped.latents} latents shipped")
        with Learner.open(shipped.bundle, Path(folder) / "state", seed=draw) as device:
            before = accuracy(device, old)
            for label, name in enumerate(new.classes):
                parts = [p for p in whole_batch(new).parts if p[0].label == label]
                device.learn((f for clip, indices in parts for f in clip.read(indices)), name)
            return before, accuracy(device, old), accuracy(device, new)


def part(photographs: Path, names: Sequence[str], folder: Path, size: int) -> FrameSource:
    """Some classes of a folder as a data set of their own."""
    folder.mkdir()
    for name in names:
        (folder / name).symlink_to((photographs / name).resolve())
    return open_source(f"folder:{folder}", size=size)


def accuracy(learner: Learner, source: FrameSource) -> float:
    right, _ = recognise(learner, source)
    return float(right.mean())


if __name__ == "__main__":
    main()
