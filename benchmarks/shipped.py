"""Forgetting of the classes that a bundle shipped with: ten classes ship, five more are taught.

Each draw chooses fifteen classes of photographs, ten to ship and five for later. `teach` makes the
bundle that ships. A new learner opens it and is taught the five one by one. Held-out photographs of
the ten are tested before and after. With `--host WEIGHTS`, `lrtflite train` trains the ten instead,
and `convert --model` ships them with a replay memory, or without one (`--seed-memory 0`).

    python benchmarks/shipped.py BUNDLE [--draws 0 1 2] [--host WEIGHTS [--seed-memory 0]]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from bundles import PHOTOGRAPHS, lrtflite, say

from lrtflite import Learner
from lrtflite.data import FrameSource, open_source, whole_batch
from lrtflite.errors import LrtfliteError
from lrtflite.runtime.model import describe_runtime
from lrtflite.system.machine import this_machine
from lrtflite.workbench.evaluation import evaluate_clips
from lrtflite.workbench.teaching import teach

SHIPPED, LATER = 10, 5


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("bundle", type=Path, help="bundle that has not been taught yet")
    parser.add_argument("--draws", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--photographs", type=Path, default=PHOTOGRAPHS)
    parser.add_argument("--host", metavar="WEIGHTS", help="train on the host from these weights")
    parser.add_argument("--seed-memory", default="500", help="latents that ship, with --host")
    arguments = parser.parse_args()
    print("| draw | shipped | shipped, after five more | the five |\n| --- | --- | --- | --- |")
    rows = []
    try:
        for draw in arguments.draws:
            rows.append(run(arguments, draw))
            print(f"| {draw} | {cells(rows[-1])} |", flush=True)
        with Learner.open(arguments.bundle) as learner:
            runtime = describe_runtime(learner.runtime)
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")
    print(f"| mean | {cells(np.mean(rows, axis=0).tolist())} |")
    print(f"\n{runtime}, 1 thread, {this_machine()}")


def cells(row: Sequence[float]) -> str:
    return " | ".join(f"{value:.3f}" for value in row)


def run(arguments: argparse.Namespace, draw: int) -> tuple[float, float, float]:
    """Return the accuracy on the shipped classes before and after, and on the later ones."""
    bundle, photographs = arguments.bundle, arguments.photographs
    names = sorted(path.name for path in photographs.iterdir() if path.is_dir())
    chosen = np.random.default_rng(draw).permutation(len(names))[: SHIPPED + LATER]
    with tempfile.TemporaryDirectory() as folder, Learner.open(bundle, seed=draw) as desk:
        size = desk.bundle.manifest.input_size
        old = part(photographs, [names[i] for i in chosen[:SHIPPED]], Path(folder) / "old", size)
        new = part(photographs, [names[i] for i in chosen[SHIPPED:]], Path(folder) / "new", size)
        shipped = Path(folder) / "bundle"
        if arguments.host is None:
            teach(desk, old, shipped)
        else:
            train(Path(folder), shipped, arguments.host, arguments.seed_memory)
        with Learner.open(shipped, Path(folder) / "state", seed=draw) as device:
            say(f"draw {draw}: {len(device.memory)} latents shipped")
            before = accuracy(device, old)
            for label, name in enumerate(new.classes):
                parts = [p for p in whole_batch(new).parts if p[0].label == label]
                device.learn((f for clip, indices in parts for f in clip.read(indices)), name)
            return before, accuracy(device, old), accuracy(device, new)


def train(folder: Path, out: Path, weights: str, seed_memory: str) -> None:
    """Train on the host, and write the bundle that ships."""
    model = folder / "model.keras"
    lrtflite(
        [
            "train",
            "--dataset",
            f"folder:{folder / 'old'}",
            "--weights",
            weights,
            "--out",
            str(model),
        ]
    )
    words = ["--model", str(model), "--out", str(out), "--seed-memory", seed_memory]
    lrtflite(["convert", *words])


def part(photographs: Path, names: Sequence[str], folder: Path, size: int) -> FrameSource:
    """Return a data set of some classes of a folder."""
    folder.mkdir()
    for name in names:
        (folder / name).symlink_to((photographs / name).resolve())
    return open_source(f"folder:{folder}", size=size)


def accuracy(learner: Learner, source: FrameSource) -> float:
    return evaluate_clips(learner, source.test_clips(), source.classes).accuracy


if __name__ == "__main__":
    main()
