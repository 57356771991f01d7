"""Exported models against the learner that they come from: answers, accuracy, size, time.

    python benchmarks/exported.py [--strategy cwr lda]

Fifty classes of photographs, ImageNet weights, `pool6`, alpha 1.0: one session with two thirds of
each class; the rest, at most ten per class, is answered by the learner and by the exported models,
float32 and int8, in a stock interpreter with one thread. Ranges of int8 are those of 100 training
photographs.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from bundles import IMAGENET, PHOTOGRAPHS, converted, lrtflite

from lrtflite import Learner
from lrtflite.data import open_source
from lrtflite.errors import LrtfliteError
from lrtflite.runtime.model import RUNTIMES, describe_runtime, installed_runtimes
from lrtflite.system.machine import this_machine

FRAMES_PER_CLASS = 10
DATASET = f"folder:{PHOTOGRAPHS}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--strategy", nargs="+", default=["cwr", "lda"])
    arguments = parser.parse_args()
    print("| strategy | model | MB | runtime | ms | largest difference | agree | accuracy |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    try:
        for strategy in arguments.strategy:
            words = ["--weights", str(IMAGENET), "--alpha", "1.0", "--strategy", strategy]
            with tempfile.TemporaryDirectory() as folder:
                compare(strategy, converted(f"export-{strategy}", words), Path(folder))
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")
    print(f"\n{this_machine()}")


def compare(strategy: str, bundle: Path, folder: Path) -> None:
    """Teach, export and print a row for each model on each runtime."""
    source = open_source(DATASET)
    frames, labels = pictures(source, source.train_clips(), None)
    with Learner.open(bundle, folder / "state") as learner:
        learner.learn(frames, labels)
    frames, labels = pictures(source, source.test_clips(), FRAMES_PER_CLASS)
    for numbers, words in {
        "float32": [],
        "int8": ["--quantize", "int8", "--calibrate", DATASET],
    }.items():
        out = folder / numbers / "model.tflite"
        lrtflite(["export", str(bundle), str(folder / "state"), "--out", str(out), *words])
        names = (out.parent / "labels.txt").read_text(encoding="utf-8").splitlines()
        truth = np.array([names.index(label) for label in labels])
        for runtime in installed_runtimes():
            state = folder / "state"
            with Learner.open(bundle, state, runtime=runtime, read_only=True) as learner:
                wanted = learner.probabilities(learner.extract(frames))
                wanted = wanted[:, [learner.labels.index(name) for name in names]]
            found, ms = answers(out, runtime, frames)
            best = found.argmax(axis=1)
            print(
                f"| {strategy} | {numbers} | {out.stat().st_size / 1e6:.2f} "
                f"| {describe_runtime(runtime)} | {ms:.2f} | {np.abs(found - wanted).max():.1g} "
                f"| {np.mean(best == wanted.argmax(axis=1)):.1%} | {np.mean(best == truth):.1%} "
                f"(learner {np.mean(wanted.argmax(axis=1) == truth):.1%}, n = {len(truth)}) |",
                flush=True,
            )


def pictures(source: Any, clips: Any, most: int | None) -> tuple[np.ndarray, list[str]]:
    frames: list[np.ndarray] = []
    labels: list[str] = []
    for clip in clips:
        label = source.classes[clip.label]
        if most is None or labels.count(label) < most:
            frames += list(clip.read([0]))
            labels.append(label)
    return np.stack(frames), labels


def answers(path: Path, runtime: str, frames: np.ndarray) -> tuple[np.ndarray, float]:
    """Return probabilities (n, classes), and the median time of an answer in ms."""
    module = importlib.import_module(RUNTIMES[runtime][1])
    model = module.Interpreter(model_path=str(path), num_threads=1)
    model.allocate_tensors()
    (into,), (out,) = model.get_input_details(), model.get_output_details()
    found, times = [], []
    for frame in frames:
        model.set_tensor(into["index"], frame[np.newaxis])
        started = time.perf_counter()
        model.invoke()
        times.append(1e3 * (time.perf_counter() - started))
        found.append(model.get_tensor(out["index"])[0].astype(np.float64))
    scale, zero = out["quantization"]
    values = (np.array(found) - zero) * scale if scale else np.array(found)
    return values, float(np.median(times))


if __name__ == "__main__":
    main()
