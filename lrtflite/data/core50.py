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

from lrtflite.data.choice import ClassChoice, pick_classes
from lrtflite.data.core50_lists import (
    CLASSES,
    Numbers,
    Recording,
    list_folder,
    merge,
    read_lists,
    thin,
    without,
)
from lrtflite.data.media import read_frames
from lrtflite.data.source import Clip, Frame, OnFile, Part
from lrtflite.data.spec import check_settings, whole_setting
from lrtflite.data.unreadable import entries_of, look_at, refuse_unreadable
from lrtflite.errors import DataError

TEST_SESSIONS = (3, 7, 10)
PROTOCOLS = ("79", "196", "391")

_IMAGE = re.compile(r"C_(\d\d)_(\d\d)_(\d\d\d)\.png")


class Core50Source:
    """CORe50's clips; without lists, so that the stream options decide what comes when.

    `train` and `test` have the frame numbers of each recording, ascending. `objects` are the
    classes, by number from 0; only they may be recorded. `skipped` names frames that are not among
    them because they cannot be read.
    """

    def __init__(
        self,
        images: Path,
        train: Numbers,
        test: Numbers,
        *,
        name: str = "core50",
        size: int,
        objects: Sequence[int] = range(len(CLASSES)),
        skipped: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.size = size
        self.classes = tuple(CLASSES[number] for number in objects)
        self._labels = {number: label for label, number in enumerate(objects)}
        self.skipped = skipped
        self._images = images
        self._train = {key: self._clip(key, train[key]) for key in sorted(train)}
        self._test = [self._clip(key, test[key]) for key in sorted(test)]

    def train_clips(self) -> Sequence[Clip]:
        return tuple(self._train.values())

    def test_clips(self) -> Sequence[Clip]:
        return tuple(self._test)

    def _clip(self, key: Recording, numbers: Sequence[int]) -> Clip:
        session, thing = key
        images, size = self._images, self.size

        def reader(indices: Sequence[int]) -> Iterator[Frame]:
            for i in indices:
                yield from read_frames(_image(images, key, numbers[i]), (0,), size)

        return Clip(self._labels[thing - 1], f"s{session}/o{thing}", len(numbers), reader)


class Core50Lists(Core50Source):
    """CORe50 whose stream is a run of NICv2-79, 196 or 391, batch by batch as published."""

    def __init__(
        self,
        images: Path,
        batches: Sequence[Numbers],
        test: Numbers,
        *,
        protocol: str,
        name: str = "core50",
        size: int,
        objects: Sequence[int] = range(len(CLASSES)),
        skipped: tuple[str, ...] = (),
    ) -> None:
        for number, batch in enumerate(batches):
            if not batch:
                raise DataError(
                    f"Expected readable frames in batch {number:02d} of {protocol}, got none; "
                    "unpack core50_128x128.zip again"
                )
        train = merge(batches)
        super().__init__(
            images, train, test, name=name, size=size, objects=objects, skipped=skipped
        )
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


def open_core50(
    path: Path,
    settings: Mapping[str, str],
    *,
    size: int,
    choice: ClassChoice | None = None,
    skip_unreadable: bool = False,
    on_file: OnFile | None = None,
) -> Core50Source:
    """`core50:PATH?lists=DIR&protocol=391&run=0&stride=1`; protocol `nic` needs no lists.

    With a `choice` of classes, a published batch keeps its frames of these, and a batch without
    any is dropped. Every frame is looked at first. An unreadable one is an error; with
    `skip_unreadable` it is left out of its batch, or of the test frames that `stride` had chosen
    with it.
    """
    check_settings("core50:PATH", settings, ["lists", "protocol", "run", "stride"])
    protocol = settings.get("protocol", "391")
    if protocol not in (*PROTOCOLS, "nic"):
        raise DataError(f"Expected protocol={', '.join(PROTOCOLS)} or nic, got {protocol!r}")
    run = whole_setting(settings, "run", 0, least=0)
    stride = whole_setting(settings, "stride", 1, least=1)
    images = _image_folder(path)
    name = "core50" if stride == 1 else f"core50 (1 in {stride} test frames)"
    batches: Sequence[Numbers]
    if protocol == "nic":
        train, test = _scan(images)
        batches = [train]
    else:
        places = [path / "batches_filelists", path, images.parent / "batches_filelists"]
        if "lists" in settings:
            places = [Path(settings["lists"]).expanduser()]
        batches, test = read_lists(list_folder(places, protocol, run))
    test = thin(test, stride)
    objects = pick_classes(choice, CLASSES, of=name)
    if choice is not None:
        kept = [_only(batch, objects) for batch in batches]
        batches, test = [batch for batch in kept if batch], _only(test, objects)
        if not batches:
            chosen = ", ".join(CLASSES[number] for number in objects)
            raise DataError(f"Expected frames of {chosen} to train on in {path}, got none")

    look = look_at(_files(images, merge([*batches, test])), on_file=on_file)
    if not skip_unreadable:
        refuse_unreadable(look, images, name=name)

    def is_lost(key: Recording, number: int) -> bool:
        return _image(images, key, number) in look.faults

    if look.faults:
        batches, test = [without(batch, is_lost) for batch in batches], without(test, is_lost)
    skipped = look.skipped(images)
    if protocol == "nic":
        train = merge(batches)
        return Core50Source(
            images, train, test, name=name, size=size, objects=objects, skipped=skipped
        )
    protocol = f"NICv2-{protocol} run {run}"
    if choice is not None:
        protocol += f", {len(objects)} of {len(CLASSES)} classes"
    return Core50Lists(
        images,
        batches,
        test,
        protocol=protocol,
        name=name,
        size=size,
        objects=objects,
        skipped=skipped,
    )


def _only(listed: Numbers, objects: Sequence[int]) -> Numbers:
    """Return the recordings of some objects, by number from 0."""
    return {(s, thing): listed[s, thing] for s, thing in listed if thing - 1 in objects}


def _image(images: Path, key: Recording, number: int) -> Path:
    session, thing = key
    return images / f"s{session}/o{thing}/C_{session:02d}_{thing:02d}_{number:03d}.png"


def _files(images: Path, listed: Numbers) -> list[Path]:
    """Return the file of each frame; raise DataError for a recording that was not unpacked."""
    for session, thing in listed:
        folder = images / f"s{session}" / f"o{thing}"
        if not folder.is_dir():
            raise DataError(
                f"Expected CORe50's images in {folder}, got no such folder; "
                "unpack core50_128x128.zip again"
            )
    return [_image(images, key, number) for key in sorted(listed) for number in listed[key]]


def _image_folder(path: Path) -> Path:
    for folder in (path / "core50_128x128", path):
        if (folder / "s1").is_dir():
            return folder
    raise DataError(
        f"Expected {path}/core50_128x128/s1/o1/C_01_01_000.png and so on, got no folder s1; "
        "unpack core50_128x128.zip there"
    )


def _scan(images: Path) -> tuple[Numbers, Numbers]:
    """The frame numbers of all 50 objects in every session, as they lie on disk: train, test."""
    train: dict[Recording, list[int]] = {}
    test: dict[Recording, list[int]] = {}
    for folder in sorted(images.glob("s*/o*")):
        for file in sorted(entries_of(folder)):
            if match := _IMAGE.fullmatch(file.name):
                session, thing, number = map(int, match.groups())
                if 1 <= thing <= len(CLASSES):
                    side = test if session in TEST_SESSIONS else train
                    side.setdefault((session, thing), []).append(number)
    return train, test
