"""Read the NICv2 lists that CORe50's authors published: the frames of each batch."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lrtflite.data.unreadable import entries_of
from lrtflite.errors import DataError

CATEGORIES = (
    "plug adapter",
    "mobile phone",
    "scissors",
    "light bulb",
    "can",
    "glasses",
    "ball",
    "marker",
    "cup",
    "remote control",
)
CLASSES = tuple(f"o{i + 1} {CATEGORIES[i // 5]}" for i in range(50))

_LINE = re.compile(r"s(\d+)/o(\d+)/C_(\d\d)_(\d\d)_(\d\d\d)\.png (\d+)")
_RUN = re.compile(r"run(\d+)")
_BATCH = re.compile(r"train_batch_(\d+)_filelist\.txt")

Recording = tuple[int, int]
"""One clip: (scene, object), both counted from 1. The authors call a scene a session."""

Numbers = Mapping[Recording, Sequence[int]]
"""The frame numbers of each recording."""


def read_list(file: Path) -> dict[Recording, list[int]]:
    """Return the frame numbers of each recording in a list of `s1/o1/C_01_01_000.png 0` lines."""
    try:
        lines = file.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"Expected a list of CORe50 frames, got {file} ({error})", "fetch the lists again"
        ) from error
    listed: dict[Recording, list[int]] = {}
    for number, line in enumerate(lines, start=1):
        match = _LINE.fullmatch(line.strip())
        scene, thing, *again, frame, label = map(int, match.groups()) if match else [0] * 6
        if not match or again != [scene, thing] or label != thing - 1 or label >= len(CLASSES):
            raise DataError(
                f"Expected a line such as 's1/o1/C_01_01_000.png 0' (label = object - 1), "
                f"got {line!r} in line {number} of {file}",
                "fetch the lists again",
            )
        listed.setdefault((scene, thing), []).append(frame)
    if not listed:
        raise DataError(f"Expected CORe50 frames in {file}, got an empty list", "fetch it again")
    return listed


def read_lists(folder: Path) -> tuple[list[Numbers], Numbers]:
    """Read a run: the training batches, and the test frames of each recording, ascending."""
    batches: list[Numbers] = [read_list(file) for file in batch_lists(folder)]
    test = merge([read_list(folder / "test_filelist.txt")])
    check_once([*batches, test], folder)
    return batches, test


def merge(lists: Sequence[Numbers]) -> dict[Recording, list[int]]:
    """Return all frame numbers of each recording, ascending."""
    merged: dict[Recording, list[int]] = {}
    for listed in lists:
        for key, numbers in listed.items():
            merged.setdefault(key, []).extend(numbers)
    return {key: sorted(numbers) for key, numbers in merged.items()}


def check_once(lists: Sequence[Numbers], folder: Path) -> None:
    """Raise DataError if a frame is listed twice."""
    for (scene, thing), numbers in merge(lists).items():
        if len(set(numbers)) < len(numbers):
            raise DataError(
                f"Expected each frame once in the lists of {folder}, "
                f"got frames of s{scene}/o{thing} twice",
                "fetch the lists again",
            )


def thin(listed: Numbers, stride: int) -> dict[Recording, list[int]]:
    """Return every `stride`-th frame, counted over all recordings in their order."""
    frames = [(key, number) for key in sorted(listed) for number in listed[key]]
    kept: dict[Recording, list[int]] = {}
    for key, number in frames[::stride]:
        kept.setdefault(key, []).append(number)
    return kept


def without(listed: Numbers, is_lost: Callable[[Recording, int], bool]) -> Numbers:
    """Remove lost frames, and recordings that have no frame left."""
    kept = {
        key: [number for number in numbers if not is_lost(key, number)]
        for key, numbers in listed.items()
    }
    return {key: numbers for key, numbers in kept.items() if numbers}


def list_folder(places: Sequence[Path], protocol: str, run: int) -> Path:
    """Return the folder with the lists of a run, from the first place that has it."""
    runs: set[int] = set()
    for place in places:
        folder = place / f"NIC_v2_{protocol}"
        if (folder / f"run{run}").is_dir():
            return folder / f"run{run}"
        runs |= {int(m[1]) for f in folder.glob("run*") if (m := _RUN.fullmatch(f.name))}
    looked = ", ".join(dict.fromkeys(str(place) for place in places))
    others = sorted(
        {f.name for place in places for f in place.glob("NIC_v2_*") if (f / f"run{run}").is_dir()}
    )
    got = f"got only run {', '.join(map(str, sorted(runs)))}" if runs else "got none"
    advice = (
        "unpack batches_filelists_NICv2.zip there, or give core50:PATH?lists=DIR or ?protocol=nic"
    )
    if others and not runs:
        got = f"got {', '.join(others)}"
        advice = f"give ?protocol={others[0].rpartition('_')[2]}"
    raise DataError(f"Expected a folder NIC_v2_{protocol}/run{run} in {looked}, {got}", advice)


def batch_lists(folder: Path) -> list[Path]:
    """Return the lists of the training batches in order; raise DataError if one is missing."""
    numbered = {int(m[1]): f for f in entries_of(folder) if (m := _BATCH.fullmatch(f.name))}
    missing = set(range(max(numbered, default=0) + 1)) - set(numbered)
    if missing:
        raise DataError(
            f"Expected train_batch_NN_filelist.txt for every batch in {folder}, "
            f"got none for batch {min(missing):02d}",
            "fetch the lists again",
        )
    return [numbered[i] for i in sorted(numbered)]
