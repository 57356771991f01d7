"""Drawn pictures of six things, and faults planted among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from lrtflite.advice import Shown
from lrtflite.data import open_source

Frame = np.ndarray
Pictures = dict[str, list[Frame]]
# Things of different categories.
THINGS = ("adapter-1", "ball-2", "cup-3", "glasses-4", "phone-5", "scissors-1")


def clean_pictures(seed: int = 11) -> Pictures:
    """Return a picture of each thing in each of the eleven scenes."""
    source = open_source(f"synthetic?classes={','.join(THINGS)}", seed=seed)
    found: Pictures = {thing: [] for thing in THINGS}
    for clip in (*source.train_clips(), *source.test_clips()):
        [frame] = clip.read([clip.length // 2])
        found[source.classes[clip.label]].append(frame)
    return found


def with_faults(pictures: Mapping[str, Sequence[Frame]]) -> Pictures:
    """Plant faults, in this order of THINGS.

    Pictures 1 to 3 of the first two are swapped, 0 and 4 of the third come again as 11 and 12, 2
    and 5 of the fourth are blurred and its 7 is dark, the fifth has two pictures, the sixth has its
    first one thirty times.
    """
    faulty = {thing: list(frames) for thing, frames in pictures.items()}
    first, second, third, fourth, fifth, sixth = (faulty[thing] for thing in THINGS)
    first[1:4], second[1:4] = second[1:4], first[1:4]
    third += [third[0].copy(), third[4].copy()]
    for number in (2, 5):
        fourth[number] = box_blurred(fourth[number], 7)
    fourth[7] = fourth[7] // 6
    del fifth[2:]
    sixth[:] = [sixth[0]] * 30
    return faulty


def box_blurred(frame: Frame, side: int) -> Frame:
    """Return the means of `side` x `side` pixels, by shifted sums."""
    shifts = range(-(side // 2), side // 2 + 1)
    rows = np.mean([np.roll(frame.astype(float), shift, axis=0) for shift in shifts], axis=0)
    return np.mean([np.roll(rows, shift, axis=1) for shift in shifts], axis=0).astype(np.uint8)


def shown(pictures: Mapping[str, Sequence[Frame]]) -> list[Shown]:
    """Return stills named `cup-3/4.png`."""

    def still(label: str, number: int, frame: Frame) -> Shown:
        def read(_: int) -> Iterator[Frame]:
            yield frame

        return Shown(label, (f"{label}/{number}.png",), read)

    return [
        still(label, number, frame)
        for label, frames in pictures.items()
        for number, frame in enumerate(frames)
    ]


def save(pictures: Mapping[str, Sequence[Frame]], folder: Path) -> Path:
    """Write the pictures as files, in a folder per thing."""
    for label, frames in pictures.items():
        (folder / label).mkdir(parents=True)
        for number, frame in enumerate(frames):
            Image.fromarray(frame).save(folder / label / f"{number:02d}.png")
    return folder
