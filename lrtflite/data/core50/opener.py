"""Open `core50:PATH`: find images and lists, choose classes, check every file.

PATH/core50_128x128/s1/o1/C_01_01_000.png           (or PATH is that folder itself)
PATH/batches_filelists/NIC_v2_391/run0/train_batch_00_filelist.txt, ..., test_filelist.txt
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lrtflite.data.core50.files import image_file, image_files, image_folder, scan
from lrtflite.data.core50.labelling import KINDS, Labelling
from lrtflite.data.core50.lists import (
    Numbers,
    Recording,
    list_folder,
    merge,
    read_lists,
    thin,
    without,
)
from lrtflite.data.core50.source import Core50Lists, Core50Source
from lrtflite.data.source import SourceRequest
from lrtflite.data.spec import check_settings, whole_setting
from lrtflite.data.unreadable import look_at, refuse_unreadable
from lrtflite.errors import DataError

PROTOCOLS = ("79", "196", "391")


@dataclass(frozen=True)
class _Settings:
    """The settings after `core50:PATH?`; `lists` is None for the default folders."""

    protocol: str
    run: int
    stride: int
    lists: Path | None
    labels: str

    @classmethod
    def parse(cls, settings: Mapping[str, str]) -> _Settings:
        check_settings("core50:PATH", settings, ["labels", "lists", "protocol", "run", "stride"])
        protocol = settings.get("protocol", "391")
        if protocol != "nic" and not (protocol.isascii() and protocol.isdecimal()):
            raise DataError(
                f"Expected protocol={', '.join(PROTOCOLS)}, nic, or the number of sessions of an "
                f"exported stream, got {protocol!r}",
                "write for example ?protocol=391",
            )
        return cls(
            protocol=protocol,
            run=whole_setting(settings, "run", 0, least=0),
            stride=whole_setting(settings, "stride", 1, least=1),
            lists=Path(settings["lists"]).expanduser() if "lists" in settings else None,
            labels=settings.get("labels", KINDS[0]),
        )


def open_core50(request: SourceRequest) -> Core50Source:
    """Open `core50:PATH?labels=objects&lists=DIR&protocol=391&run=0&stride=1`.

    Protocol `nic` needs no lists; another number names the lists of an exported stream.

    With a choice of classes, a published batch keeps only the frames of these classes, and an empty
    batch is dropped. Every frame is checked first. An unreadable frame is an error; with
    `skip_unreadable` it is left out of its batch, or out of the test frames chosen by `stride`.
    """
    settings = _Settings.parse(request.settings)
    path = Path(request.argument).expanduser()
    images = image_folder(path)
    name = "core50" if settings.stride == 1 else f"core50 (1 in {settings.stride} test frames)"
    labelling = Labelling.of(settings.labels, request.choice, name=name)
    batches, test = _listed_frames(path, images, settings)
    if request.choice is not None:
        batches, test = _of_classes(batches, test, labelling, path)

    look = look_at(image_files(images, merge([*batches, test])), on_progress=request.on_progress)
    if not request.skip_unreadable:
        refuse_unreadable(look, images, name=name)

    def is_lost(key: Recording, number: int) -> bool:
        return image_file(images, key, number) in look.faults

    if look.faults:
        batches, test = [without(batch, is_lost) for batch in batches], without(test, is_lost)
    skipped = look.skipped(images)
    if settings.protocol == "nic":
        return Core50Source(
            images,
            merge(batches),
            test,
            name=name,
            size=request.size,
            labelling=labelling,
            skipped=skipped,
        )
    return Core50Lists(
        images,
        batches,
        test,
        protocol=_protocol_name(settings, labelling),
        name=name,
        size=request.size,
        labelling=labelling,
        skipped=skipped,
    )


def _listed_frames(
    path: Path, images: Path, settings: _Settings
) -> tuple[Sequence[Numbers], Numbers]:
    """Return the training batches (a single one without lists) and the test frames."""
    batches: Sequence[Numbers]
    if settings.protocol == "nic":
        train, test = scan(images)
        batches = [train]
    else:
        places = [path / "batches_filelists", path, images.parent / "batches_filelists"]
        if settings.lists is not None:
            places = [settings.lists]
        batches, test = read_lists(list_folder(places, settings.protocol, settings.run))
    return batches, thin(test, settings.stride)


def _of_classes(
    batches: Sequence[Numbers], test: Numbers, labelling: Labelling, path: Path
) -> tuple[Sequence[Numbers], Numbers]:
    """Keep the frames of the chosen classes; raise DataError if no batch is left."""

    def only(listed: Numbers) -> Numbers:
        return {key: numbers for key, numbers in listed.items() if key[1] - 1 in labelling.label_of}

    kept = [batch for batch in map(only, batches) if batch]
    if not kept:
        raise DataError(
            f"Expected training frames of {', '.join(labelling.classes)} in {path}, got none",
            "choose other classes",
        )
    return kept, only(test)


def _protocol_name(settings: _Settings, labelling: Labelling) -> str:
    published = settings.protocol in PROTOCOLS
    kind = "NICv2-" if published else "exported stream of "
    name = f"{kind}{settings.protocol} run {settings.run}"
    everything = Labelling.of(settings.labels, name="core50").classes
    if len(labelling.classes) < len(everything):
        named = "classes" if settings.labels == KINDS[0] else settings.labels
        return f"{name}, {len(labelling.classes)} of {len(everything)} {named}"
    return name if settings.labels == KINDS[0] else f"{name}, {len(everything)} {settings.labels}"
