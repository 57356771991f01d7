"""Find the pictures of OpenLORIS-object on disk: by its authors' lists, or by folder.

PATH/train/illumination/segment1/bottle_01/*.jpg, and the same below PATH/test
PATH/batches_filelists/domain/iros/train_batch_00.txt, ..., test.txt

A robot recorded every object under four factors (illumination, occlusion, object size in pixels,
clutter), each at three levels, in three segments per level. A recording is one object in one
segment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lrtflite.data.listing import first_few
from lrtflite.data.unreadable import entries_of
from lrtflite.errors import DataError

# In the order in which the authors' second benchmark presents them.
FACTORS = ("illumination", "occlusion", "pixel", "clutter")
LEVELS, SEGMENTS_PER_LEVEL = 3, 3
SEGMENTS = LEVELS * SEGMENTS_PER_LEVEL
# Objects of the competition at IROS 2019, by category: 69 in all. There is no cup_09.
_COUNTS = {
    "bottle": 4,
    "bowl": 5,
    "corkscrew": 1,
    "cottonswab": 2,
    "cup": 8,
    "cushion": 3,
    "glasses": 4,
    "knife": 1,
    "ladle": 4,
    "mask": 5,
    "paper_cutter": 4,
    "pencil": 5,
    "plasticbag": 3,
    "plug": 4,
    "pot": 1,
    "scissors": 3,
    "stapler": 3,
    "thermometer": 3,
    "toy": 5,
}
CHALLENGE = tuple(
    sorted(
        [f"{name}_{n:02d}" for name, count in _COUNTS.items() for n in range(1, count + 1)]
        + ["cup_10"]
    )
)
# Folder of the lists of each choice of `factor`; the competition mixed all factors.
LISTS = {**{factor: factor for factor in FACTORS}, "all": "iros"}
_BATCH = re.compile(r"train_batch_(\d+)\.txt")
_PICTURES = (".jpg", ".jpeg", ".png")

Recordings = Mapping[str, Sequence[Path]]
"""The pictures of each recording, `train/pixel/segment4/cup_03`, in the order of time."""


@dataclass(frozen=True)
class Layout:
    """The recordings of each training batch and of the test set; `objects` are the classes.

    A recording without pictures is missing from the tree.
    """

    batches: Sequence[Recordings]
    test: Recordings
    objects: tuple[str, ...]


def object_of(recording: str) -> str:
    """Return the object of a recording, the name of its folder."""
    return recording.rpartition("/")[2]


def find_layout(path: Path, factor: str, lists: Path | None) -> Layout:
    """Return the layout by lists if there are any, else by folders."""
    if not path.is_dir():
        what = "is not a folder" if path.exists() else "does not exist"
        raise DataError(f"Expected OpenLORIS-object in {path}, which {what}", "check the path")
    folder = (lists or path / "batches_filelists") / "domain" / LISTS[factor]
    if folder.is_dir():
        return by_lists(path, folder)
    if lists is not None:
        raise DataError(
            f"Expected train_batch_00.txt and so on in {folder}, got no such folder",
            "unpack batches_filelists.zip there",
        )
    return by_folders(path, FACTORS if factor == "all" else (factor,))


def by_folders(path: Path, factors: Sequence[str]) -> Layout:
    """Return one batch per factor and level, or one per segment for a single factor."""
    wanted = [(factor, number) for factor in factors for number in range(1, SEGMENTS + 1)]
    absent = [
        f"{side}/{factor}/segment{number}"
        for side in ("train", "test")
        for factor, number in wanted
        if not (path / side / factor / f"segment{number}").is_dir()
    ]
    if len(absent) == 2 * len(wanted):
        raise DataError(
            f"Expected {path}/train/{factors[0]}/segment1/OBJECT/*.jpg and so on, got no such "
            "folder",
            "unpack train.zip and test.zip there",
        )
    refuse_missing(absent, 2 * len(wanted), "segments", path)
    found = {
        thing
        for side in ("train", "test")
        for factor, number in wanted
        for thing in _objects_in(path / side / factor / f"segment{number}")
    }
    objects = (*(o for o in CHALLENGE if o in found), *sorted(found - set(CHALLENGE)))

    def recordings(side: str, segments: Sequence[tuple[str, int]]) -> Recordings:
        return {
            f"{side}/{factor}/segment{number}/{thing}": _pictures(
                path / side / factor / f"segment{number}" / thing
            )
            for factor, number in segments
            for thing in objects
        }

    together = 1 if len(factors) == 1 else SEGMENTS_PER_LEVEL
    parts = [wanted[start : start + together] for start in range(0, len(wanted), together)]
    batches = [recordings("train", part) for part in parts]
    return Layout(batches, recordings("test", wanted), objects)


def by_lists(path: Path, folder: Path) -> Layout:
    """Return the batches that the authors listed, as lines `PICTURE LABEL` relative to `path`."""
    numbered = {int(m[1]): f for f in entries_of(folder) if (m := _BATCH.fullmatch(f.name))}
    gaps = sorted(set(range(max(numbered, default=0) + 1)) - set(numbered))
    if gaps:
        raise DataError(
            f"Expected train_batch_NN.txt for every batch in {folder}, got none for batch "
            f"{gaps[0]:02d}",
            "unpack batches_filelists.zip again",
        )
    labels: dict[int, str] = {}
    batches = [read_list(path, numbered[number], labels) for number in sorted(numbered)]
    test = read_list(path, folder / "test.txt", labels)
    return Layout(batches, test, tuple(labels[label] for label in sorted(labels)))


def read_list(path: Path, file: Path, labels: dict[int, str]) -> Recordings:
    """Return the recordings of a list, and add the object of each label to `labels`."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"Expected a list of OpenLORIS pictures, got {file} ({error})",
            "unpack batches_filelists.zip again",
        ) from error
    found: dict[str, list[Path]] = {}
    for number, line in enumerate(lines, start=1):
        picture, _, label = line.strip().rpartition(" ")
        recording = picture.rpartition("/")[0]
        thing = object_of(recording)
        is_number = label.isascii() and label.isdecimal()
        if not (thing and is_number and labels.setdefault(int(label), thing) == thing):
            raise DataError(
                "Expected a line such as 'train/pixel/segment1/cup_03/1.jpg 14', with one label "
                f"per object, got {line!r} in line {number} of {file}",
                "unpack the lists again",
            )
        found.setdefault(recording, []).append(path / picture)
    if not found:
        raise DataError(
            f"Expected OpenLORIS pictures in {file}, got an empty list", "fetch it again"
        )
    return found


def refuse_missing(missing: Sequence[str], total: int, what: str, path: Path) -> None:
    """Raise DataError if any are missing, with their number and the first few."""
    if missing:
        raise DataError(
            f"Expected {total} {what} of OpenLORIS-object in {path}, got {len(missing)} missing: "
            f"{first_few(missing)}",
            "unpack train.zip and test.zip again",
        )


def _objects_in(folder: Path) -> set[str]:
    return {entry.name for entry in entries_of(folder) if entry.is_dir()}


def _pictures(folder: Path) -> list[Path]:
    """Return the pictures of a recording in the order of their names, numbers by value."""
    if not folder.is_dir():
        return []
    files = [file for file in entries_of(folder) if file.suffix.lower() in _PICTURES]
    return sorted(files, key=_order)


def _order(file: Path) -> tuple[tuple[int, str], ...]:
    parts = re.split(r"(\d+)", file.stem)
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts)
