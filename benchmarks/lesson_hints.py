"""False alarms and detection of the hints "blurred", "dark" and "same".

Lessons are drawn videos of 40 frames, and twelve photographs of a class each; `--photographs even`
takes every second class. Blurred frames have sensor noise on top. Frames that come again differ by
noise, gain and a shift, as from a camera that stands still or a hand that shakes.

    python benchmarks/lesson_hints.py [--seeds 2000 2001 2002] [--photographs odd] [--size 128]
    python benchmarks/lesson_hints.py --seeds 1000 --photographs even    # to choose constants
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
from bundles import LARGE_PHOTOGRAPHS, PHOTOGRAPHS, say
from numpy.typing import NDArray

from lrtflite.data import open_source
from lrtflite.errors import LrtfliteError
from lrtflite.frames.hints import BLURRED, DARK, SAME, FrameHints
from lrtflite.system.machine import this_machine

Frame = NDArray[np.uint8]
Change = Callable[[Frame, np.random.Generator], NDArray[np.float64]]
VIDEOS, FRAMES, PICTURES = 40, 40, 12
# Frames of a lesson that are left as they are before the changed ones.
BEFORE = 6


def gaussian(sigma: float) -> Change:
    reach = int(4 * sigma + 0.5)
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    return separable(weights / weights.sum(), axes=(0, 1))


def motion(pixels: int) -> Change:
    return separable(np.full(pixels, 1 / pixels), axes=(1,))


def separable(weights: NDArray[np.float64], *, axes: tuple[int, ...]) -> Change:
    def change(frame: Frame, rng: np.random.Generator) -> NDArray[np.float64]:
        blurred = frame.astype(float)
        half = len(weights) // 2
        for axis in axes:
            pad = [(half, half) if each == axis else (0, 0) for each in range(3)]
            padded = np.pad(blurred, pad, mode="edge")
            size = frame.shape[axis]
            parts = [
                weight * np.take(padded, range(start, start + size), axis)
                for start, weight in enumerate(weights)
            ]
            blurred = np.sum(parts, axis=0)
        return np.asarray(blurred + rng.normal(0, 1.5, frame.shape))

    return change


def darker(factor: float) -> Change:
    return lambda frame, rng: frame * factor + rng.normal(0, 1.5, frame.shape)


def again(shift: int) -> Change:
    def change(frame: Frame, rng: np.random.Generator) -> NDArray[np.float64]:
        moved = np.roll(frame, tuple(rng.integers(-shift, shift + 1, 2)), axis=(0, 1))
        return np.asarray(moved * rng.uniform(0.96, 1.04) + rng.normal(0, 3, frame.shape))

    return change


CHANGES: dict[str, tuple[str, Change]] = {
    "Gaussian, sigma 1": (BLURRED, gaussian(1)),
    "Gaussian, sigma 1.5": (BLURRED, gaussian(1.5)),
    "Gaussian, sigma 2": (BLURRED, gaussian(2)),
    "Gaussian, sigma 3": (BLURRED, gaussian(3)),
    "motion along one axis, 9 pixels": (BLURRED, motion(9)),
    "darkened to 10 %": (DARK, darker(0.1)),
    "darkened to 20 %": (DARK, darker(0.2)),
    "darkened to 30 %": (DARK, darker(0.3)),
    "camera stands still": (SAME, again(0)),
    "hand shakes by 1 pixel": (SAME, again(1)),
    "hand shakes by 2 pixels": (SAME, again(2)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="*", default=[2000, 2001, 2002])
    parser.add_argument("--photographs", choices=("odd", "even", "none"), default="odd")
    parser.add_argument("--size", type=int, choices=(128, 224), default=128)
    arguments = parser.parse_args()
    try:
        run(arguments)
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")


def run(arguments: argparse.Namespace) -> None:
    worlds = {
        "drawn": [lesson for seed in arguments.seeds for lesson in drawn(seed, arguments.size)],
        "photographs": list(photographs(arguments.photographs, arguments.size)),
    }
    worlds = {name: lessons for name, lessons in worlds.items() if lessons}
    print(f"| frames | hint | {' | '.join(worlds)} |\n|{' --- |' * (2 + len(worlds))}")
    for hint in (BLURRED, DARK, SAME):
        rates = [false_alarms(lessons, hint) for lessons in worlds.values()]
        print(f"| as they are | {hint} | {' | '.join(rates)} |")
    for name, (hint, change) in CHANGES.items():
        say(name)
        rates = [detected(lessons, hint, change) for lessons in worlds.values()]
        print(f"| {name} | {hint} | {' | '.join(rates)} |")
    lessons = next(iter(worlds.values()))
    print(f"{milliseconds(lessons):.2f} ms a frame of {arguments.size} pixels, {this_machine()}")


def drawn(seed: int, size: int) -> Iterator[list[Frame]]:
    clips = open_source(f"synthetic?frames={FRAMES}", size=size, seed=seed).train_clips()
    for place in np.random.default_rng(seed).permutation(len(clips))[:VIDEOS]:
        yield list(clips[place].read())


def photographs(classes: str, size: int) -> Iterator[list[Frame]]:
    if classes == "none":
        return
    folder = PHOTOGRAPHS if size == 128 else LARGE_PHOTOGRAPHS
    source = open_source(f"folder:{folder}", size=size)
    for label in range(classes == "odd", len(source.classes), 2):
        clips = [clip for clip in source.train_clips() if clip.label == label]
        yield [next(clip.read()) for clip in clips[:PICTURES]]


def false_alarms(lessons: list[list[Frame]], hint: str) -> str:
    found = []
    for lesson in lessons:
        hints = FrameHints()
        found += [hint in hints.add(frame) for frame in lesson]
    return f"{np.mean(found):.1%} of {len(found):,}"


def detected(lessons: list[list[Frame]], hint: str, change: Change) -> str:
    """Return the share of changed frames with the hint, after some that are as they were.

    For "same", the last of those frames comes again and again, and the last changes count.
    """
    rng, found = np.random.default_rng(0), []
    for lesson in lessons:
        hints = FrameHints()
        for frame in lesson[:BEFORE]:
            hints.add(frame)
        frames = [lesson[BEFORE - 1]] * 14 if hint == SAME else lesson[BEFORE : BEFORE + 6]
        changed = (change(frame, rng).clip(0, 255).astype(np.uint8) for frame in frames)
        seen = [hint in hints.add(frame) for frame in changed]
        found += seen[-6:]
    return f"{np.mean(found):.1%} of {len(found):,}"


def milliseconds(lessons: list[list[Frame]]) -> float:
    """Return the median time of a call."""
    times = []
    for lesson in lessons[:10]:
        hints = FrameHints()
        for frame in lesson:
            started = time.perf_counter()
            hints.add(frame)
            times.append(1e3 * (time.perf_counter() - started))
    return float(np.median(times))


if __name__ == "__main__":
    main()
