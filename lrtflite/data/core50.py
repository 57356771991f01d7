"""`core50:PATH`: CORe50 (Lomonaco & Maltoni, 2017) with the NICv2 lists of its authors.

    PATH/core50_128x128/s1/o1/C_01_01_000.png           (or PATH is that folder itself)
    PATH/batches_filelists/NIC_v2_391/run0/train_batch_00_filelist.txt, ..., test_filelist.txt

50 objects (5 of each category) in 11 sessions; one object in one session is a clip of some 300
frames. Sessions 3, 7 and 10 are the test set.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lrtflite.data.media import read_frames
from lrtflite.data.source import Clip, Frame, Part, check_settings, whole_setting
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
TEST_SESSIONS = (3, 7, 10)
PROTOCOLS = ("79", "196", "391")

_IMAGE = re.compile(r"C_(\d\d)_(\d\d)_(\d\d\d)\.png")
_LINE = re.compile(r"s(\d+)/o(\d+)/C_(\d\d)_(\d\d)_(\d\d\d)\.png (\d+)")
_BATCH = re.compile(r"train_batch_(\d+)_filelist\.txt")

Recording = tuple[int, int]
"""(session, object), both from 1: one clip."""

Numbers = Mapping[Recording, Sequence[int]]
"""The frame numbers of each recording."""


class Core50Source:
    """CORe50's clips; without lists, so that the stream options decide what comes when.

    `train` and `test` have the frame numbers of each recording, ascending; `stride` is the step
    from one test frame to the next.
    """

    classes = CLASSES

    def __init__(
        self, images: Path, train: Numbers, test: Numbers, *, size: int, stride: int
    ) -> None:
        self.name = "core50" if stride == 1 else f"core50 (1 in {stride} test frames)"
        self.size = size
        self._images = images
        self._train = {key: self._clip(key, train[key]) for key in sorted(train)}
        kept: dict[Recording, list[int]] = {}
        listed = [(key, number) for key in sorted(test) for number in test[key]]
        for recording, number in listed[::stride]:
            kept.setdefault(recording, []).append(number)
        self._test = [self._clip(key, numbers) for key, numbers in kept.items()]

    def train_clips(self) -> Sequence[Clip]:
        return tuple(self._train.values())

    def test_clips(self) -> Sequence[Clip]:
        return tuple(self._test)

    def _clip(self, key: Recording, numbers: Sequence[int]) -> Clip:
        session, thing = key
        folder, size = self._images / f"s{session}" / f"o{thing}", self.size
        if not folder.is_dir():
            raise DataError(
                f"Expected CORe50's images in {folder}, got no such folder; "
                "unpack core50_128x128.zip again"
            )

        def reader(indices: Sequence[int]) -> Iterator[Frame]:
            for i in indices:
                path = folder / f"C_{session:02d}_{thing:02d}_{numbers[i]:03d}.png"
                yield from read_frames(path, (0,), size)

        return Clip(thing - 1, f"s{session}/o{thing}", len(numbers), reader)


class Core50Lists(Core50Source):
    """CORe50 whose stream is a run of NICv2-79, 196 or 391, batch by batch as published."""

    def __init__(
        self,
        images: Path,
        batches: Sequence[Numbers],
        test: Numbers,
        *,
        protocol: str,
        size: int,
        stride: int,
    ) -> None:
        train = _merge(batches)
        for key, numbers in _merge([train, test]).items():
            if len(set(numbers)) < len(numbers):
                raise DataError(
                    f"Expected each frame once in the lists of {protocol}, "
                    f"got frames of s{key[0]}/o{key[1]} twice; fetch the lists again"
                )
        super().__init__(images, train, _merge([test]), size=size, stride=stride)
        self.protocol = protocol
        self._batches = [
            tuple(self._part(key, numbers, train[key]) for key, numbers in listed.items())
            for listed in batches
        ]

    def listed_batches(self) -> Sequence[tuple[Part, ...]]:
        return tuple(self._batches)

    def _part(self, key: Recording, numbers: Sequence[int], of_clip: Sequence[int]) -> Part:
        position = {number: i for i, number in enumerate(of_clip)}
        return self._train[key], tuple(sorted(position[number] for number in numbers))


def open_core50(path: Path, settings: Mapping[str, str], *, size: int) -> Core50Source:
    """`core50:PATH?lists=DIR&protocol=391&run=0&stride=1`; protocol `nic` needs no lists."""
    check_settings("core50:PATH", settings, ["lists", "protocol", "run", "stride"])
    protocol = settings.get("protocol", "391")
    if protocol not in (*PROTOCOLS, "nic"):
        raise DataError(f"Expected protocol={', '.join(PROTOCOLS)} or nic, got {protocol!r}")
    run = whole_setting(settings, "run", 0, least=0)
    stride = whole_setting(settings, "stride", 1, least=1)
    images = _image_folder(path)
    if protocol == "nic":
        found = _scan(images)
        train = {key: of for key, of in found.items() if key[0] not in TEST_SESSIONS}
        test = {key: of for key, of in found.items() if key[0] in TEST_SESSIONS}
        return Core50Source(images, train, test, size=size, stride=stride)
    if "lists" in settings:
        places = [Path(settings["lists"]).expanduser()]
    else:
        places = [path / "batches_filelists", path, images.parent / "batches_filelists"]
    folder = _list_folder(places, protocol, run)
    return Core50Lists(
        images,
        [read_list(file) for file in _batch_lists(folder)],
        read_list(folder / "test_filelist.txt"),
        protocol=f"NICv2-{protocol} run {run}",
        size=size,
        stride=stride,
    )


def read_list(file: Path) -> dict[Recording, list[int]]:
    """The frame numbers of each recording in a list; a line is `s1/o1/C_01_01_000.png 0`."""
    try:
        lines = file.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"Expected a list of CORe50 frames, got {file} ({error})") from error
    listed: dict[Recording, list[int]] = {}
    for number, line in enumerate(lines, start=1):
        match = _LINE.fullmatch(line.strip())
        session, thing, *again, frame, label = map(int, match.groups()) if match else [0] * 6
        if not match or again != [session, thing] or label != thing - 1 or label >= len(CLASSES):
            raise DataError(
                f"Expected a line such as 's1/o1/C_01_01_000.png 0' (label = object - 1), "
                f"got {line!r} in line {number} of {file}; fetch the lists again"
            )
        listed.setdefault((session, thing), []).append(frame)
    if not listed:
        raise DataError(f"Expected CORe50 frames in {file}, got an empty list")
    return listed


def _merge(lists: Sequence[Numbers]) -> dict[Recording, list[int]]:
    """All frame numbers of each recording, ascending."""
    merged: dict[Recording, list[int]] = {}
    for listed in lists:
        for key, numbers in listed.items():
            merged.setdefault(key, []).extend(numbers)
    return {key: sorted(numbers) for key, numbers in merged.items()}


def _image_folder(path: Path) -> Path:
    for folder in (path / "core50_128x128", path):
        if (folder / "s1").is_dir():
            return folder
    raise DataError(
        f"Expected {path}/core50_128x128/s1/o1/C_01_01_000.png and so on, got no folder s1; "
        "unpack core50_128x128.zip there"
    )


def _list_folder(places: Sequence[Path], protocol: str, run: int) -> Path:
    for place in places:
        folder = place / f"NIC_v2_{protocol}" / f"run{run}"
        if folder.is_dir():
            return folder
    looked = ", ".join(dict.fromkeys(str(place) for place in places))
    raise DataError(
        f"Expected a folder NIC_v2_{protocol}/run{run} in {looked}, got none; unpack "
        "batches_filelists_NICv2.zip there, or say core50:PATH?lists=DIR or ?protocol=nic"
    )


def _batch_lists(folder: Path) -> list[Path]:
    numbered = {int(m[1]): f for f in folder.iterdir() if (m := _BATCH.fullmatch(f.name))}
    missing = set(range(max(numbered, default=0) + 1)) - set(numbered)
    if missing:
        raise DataError(
            f"Expected train_batch_NN_filelist.txt for every batch in {folder}, "
            f"got none for batch {min(missing):02d}; fetch the lists again"
        )
    return [numbered[i] for i in sorted(numbered)]


def _scan(images: Path) -> dict[Recording, list[int]]:
    """The frame numbers of all 50 objects in every session, as they lie on disk."""
    frames: dict[Recording, list[int]] = {}
    for folder in sorted(images.glob("s*/o*")):
        for file in sorted(folder.iterdir()):
            if match := _IMAGE.fullmatch(file.name):
                session, thing, number = map(int, match.groups())
                if 1 <= thing <= len(CLASSES):
                    frames.setdefault((session, thing), []).append(number)
    return frames
