"""Compare settings of `lrtflite train` on a few photographs of each of ten classes.

Each draw chooses ten classes of the photographs in `../shared` (or LRTFLITE_SHARED), some pictures
of each to train on and fifteen to hold out. Settings were chosen on draws 100 to 103; figures are
reported for other draws.

    python benchmarks/host_training.py [--draws 0 1 2] [--pictures 12] [--weights imagenet demo]
        [--only conv6/dw pool6]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
from bundles import IMAGENET, PHOTOGRAPHS, say

from lrtflite.data import FrameSource, open_source
from lrtflite.errors import DataError, LrtfliteError
from lrtflite.host.training import FIRST_BATCH, TrainOptions, TrainResult, train
from lrtflite.system.machine import this_machine

CLASSES = 10
# Photographs of each class that are held out.
HELD_OUT_PICTURES = 15
ALL = replace(FIRST_BATCH, freeze_below="images", lower_lr=None)
SETTINGS = {
    "all layers, lr 0.01, 20 epochs": replace(ALL, lr=0.01, epochs=20, patience=None),
    "all layers, lr 0.001, 4 epochs (the paper)": replace(ALL, lr=0.001, epochs=4, patience=None),
    "all layers, lr 0.003, early stopping": replace(ALL, lr=0.003, epochs=20),
    "above conv5_4/dw, early stopping": replace(FIRST_BATCH, freeze_below="conv5_4/dw"),
    "above conv6/dw, early stopping (the default)": FIRST_BATCH,
    "above pool6, lr 0.01, early stopping": replace(FIRST_BATCH, freeze_below="pool6", lr=0.01),
}
WEIGHTS = {"imagenet": str(IMAGENET), "demo": "demo"}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument(
        "--pictures", type=int, default=12, help="photographs of each class to train on"
    )
    parser.add_argument("--weights", choices=WEIGHTS, nargs="+", default=list(WEIGHTS))
    parser.add_argument(
        "--only",
        nargs="+",
        default=[""],
        help="run only settings whose name contains one of these words",
    )
    arguments = parser.parse_args()
    print("| weights | settings | held-out accuracy by draw | mean | training | seconds |")
    print("| --- | --- | --- | --- | --- | --- |")
    try:
        for weights in arguments.weights:
            for name, options in SETTINGS.items():
                if any(word in name for word in arguments.only):
                    chosen = replace(options, weights=WEIGHTS[weights])
                    found = [run(draw, arguments.pictures, chosen) for draw in arguments.draws]
                    print(f"| {weights} | {name} | {cells(found)} |", flush=True)
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")
    print(
        f"\n{arguments.pictures} photographs of each of {CLASSES} classes, "
        f"{HELD_OUT_PICTURES} held out;"
    )
    print(f"TensorFlow {version('tensorflow')}, {this_machine()}")


def cells(found: Sequence[tuple[TrainResult, float]]) -> str:
    """Return the figures of one row of the table."""
    held_out = [result.held_out for result, _ in found]
    fitted = [result.train_accuracy for result, _ in found]
    seconds = [taken for _, taken in found]
    return (
        f"{', '.join(f'{share:.3f}' for share in held_out)} | {np.mean(held_out):.3f} | "
        f"{np.mean(fitted):.3f} | {np.mean(seconds):.0f}"
    )


def run(draw: int, pictures: int, options: TrainOptions) -> tuple[TrainResult, float]:
    """Train on a draw; return the result and the seconds it took."""
    with tempfile.TemporaryDirectory() as folder:
        source = drawn(Path(folder) / "things", draw, pictures)
        start = time.monotonic()
        asked = replace(options, first_classes=None, seed=draw)
        result = train(source, Path(folder) / "model.keras", asked)
    taken = time.monotonic() - start
    say(
        f"draw {draw}: epoch {result.best_epoch} of {len(result.history)}, "
        f"held-out {result.held_out:.3f}, {taken:.0f} s"
    )
    return result, taken


def drawn(folder: Path, draw: int, pictures: int) -> FrameSource:
    """Return a data set of ten classes and some pictures of each, made of links in `folder`."""
    if not PHOTOGRAPHS.is_dir():
        raise DataError(f"Expected photographs in {PHOTOGRAPHS}, got none", "set LRTFLITE_SHARED")
    rng = np.random.default_rng(draw)
    names = sorted(path.name for path in PHOTOGRAPHS.iterdir())
    for chosen in rng.permutation(len(names))[:CLASSES]:
        files = sorted((PHOTOGRAPHS / names[chosen]).resolve().iterdir())
        (folder / names[chosen]).mkdir(parents=True)
        for number in rng.permutation(len(files))[: pictures + HELD_OUT_PICTURES]:
            (folder / names[chosen] / files[number].name).symlink_to(files[number])
    share = HELD_OUT_PICTURES / (pictures + HELD_OUT_PICTURES)
    return open_source(f"folder:{folder}?test={share}", seed=draw)


if __name__ == "__main__":
    main()
