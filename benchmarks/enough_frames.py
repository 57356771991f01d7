"""Frames until a lesson has enough of them, and the accuracy that the rest would have added.

Twelve classes drawn at random are taught one by one: once with all frames of each lesson, once with
those until `EnoughFrames` says that there are enough. A lesson of `synthetic` is 100 frames of one
scene, 20 s at 5 frames a second; one of a folder is all training photographs of a class.

    python benchmarks/enough_frames.py BUNDLE synthetic [--seeds 2000 2001 2002]
    python benchmarks/enough_frames.py photos folder:PATH --seeds 100 101 102
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite import Learner, LrtfliteError
from lrtflite.data import open_source
from lrtflite.runtime.model import describe_runtime
from lrtflite.session.enough import EnoughFrames
from lrtflite.system.machine import this_machine

CLASSES, FRAMES = 12, 100
Latents = NDArray[Any]


@dataclass(frozen=True)
class Lessons:
    """Latents of each class: those to teach, and those to test."""

    names: tuple[str, ...]
    taught: tuple[Latents, ...]
    tested: tuple[Latents, ...]


@dataclass(frozen=True)
class Result:
    """The accuracy after all lessons, and the frames of each; None where there never are enough."""

    accuracy: float
    frames: tuple[int | None, ...]
    ms: float


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("bundle")
    parser.add_argument("dataset", help="synthetic or folder:PATH")
    parser.add_argument("--seeds", type=int, nargs="+", default=[2000, 2001, 2002])
    arguments = parser.parse_args()
    try:
        run(arguments)
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")


def run(arguments: argparse.Namespace) -> None:
    print("| seed | frames, mean | most | never enough | all frames | until enough | lost |")
    print(f"|{' --- |' * 7}")
    found = []
    for seed in arguments.seeds:
        lessons = extracted(arguments.bundle, arguments.dataset, seed)
        every = taught(arguments.bundle, lessons, stop=False)
        cut = taught(arguments.bundle, lessons, stop=True)
        used = [
            len(lesson) if count is None else count
            for count, lesson in zip(cut.frames, lessons.taught)
        ]
        never = cut.frames.count(None)
        found.append((float(np.mean(used)), max(used), never, every.accuracy, cut.accuracy))
        print(f"| {seed} | {line(found[-1])} |")
    print(f"| mean | {line(np.mean(np.array(found), axis=0))} |")
    with Learner.open(arguments.bundle) as learner:
        print(
            f"{CLASSES} classes, {learner.bundle.manifest.strategy}, "
            f"{cut.ms:.2f} ms a frame; {describe_runtime(learner.runtime)}, on {this_machine()}"
        )


def line(figures: Any) -> str:
    frames, most, never, every, cut = figures
    shown = f"{frames:.1f} | {most:.0f} | {never:.1f} of {CLASSES}"
    return f"{shown} | {every:.3f} | {cut:.3f} | {every - cut:+.3f}"


def extracted(bundle: str, dataset: str, seed: int) -> Lessons:
    is_drawn = dataset == "synthetic"
    rng = np.random.default_rng(seed)
    with Learner.open(bundle) as learner:
        source = open_source(
            f"synthetic?frames={FRAMES}" if is_drawn else dataset,
            size=learner.bundle.manifest.input_size,
            seed=seed if is_drawn else 0,
        )
        names: list[str] = []
        taught: list[Latents] = []
        tested: list[Latents] = []
        for label in rng.permutation(len(source.classes))[:CLASSES]:
            train = [clip for clip in source.train_clips() if clip.label == label]
            test = [clip for clip in source.test_clips() if clip.label == label]
            order = rng.permutation(len(train))
            chosen = [train[place] for place in (order[:1] if is_drawn else order)]
            names.append(source.classes[label])
            for clips, into in ((chosen, taught), (test, tested)):
                frames = [frame for clip in clips for frame in clip.read()]
                into.append(learner.extract(np.stack(frames)))
    return Lessons(tuple(names), tuple(taught), tuple(tested))


def taught(bundle: str, lessons: Lessons, *, stop: bool) -> Result:
    counts: list[int | None] = []
    times: list[float] = []
    with Learner.open(bundle) as learner:
        for name, latents in zip(lessons.names, lessons.taught):
            enough = EnoughFrames(learner.memory)
            for latent in latents if stop else ():
                started = time.perf_counter()
                enough.add(latent)
                times.append(1e3 * (time.perf_counter() - started))
                if enough.enough:
                    break
            counts.append(enough.frames if enough.enough else None)
            learner.learn_latents(latents[: counts[-1]], name)
        right = [
            top[0].label == name
            for name, latents in zip(lessons.names, lessons.tested)
            for top in learner.predict_latents(latents, top=1)
        ]
    return Result(float(np.mean(right)), tuple(counts), float(np.mean(times)) if times else 0.0)


if __name__ == "__main__":
    main()
