"""OpenLORIS-object as clips of frames, in the batches of the protocol NI ("new instances").

The first batch has every class, and each later batch has new recordings of the same classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lrtflite.data.choice import pick_classes
from lrtflite.data.media import read_frames
from lrtflite.data.openloris.layout import (
    FACTORS,
    LISTS,
    Layout,
    Recordings,
    find_layout,
    object_of,
    refuse_missing,
)
from lrtflite.data.source import Clip, Frame, Part, SourceRequest
from lrtflite.data.spec import check_settings, whole_setting
from lrtflite.data.unreadable import look_at, refuse_unreadable
from lrtflite.errors import DataError


class OpenLorisSource:
    """The recordings of a layout; a clip is one object in one segment.

    `labels` has the class of each object; other objects are left out. `skipped` names the files
    that were left out because they cannot be read.
    """

    def __init__(
        self,
        layout: Layout,
        labels: Mapping[str, int],
        *,
        protocol: str = "ni",
        name: str = "openloris",
        size: int,
        skipped: tuple[str, ...] = (),
    ) -> None:
        self.name, self.size, self.protocol, self.skipped = name, size, protocol, skipped
        self.classes = tuple(labels)
        self._labels = labels
        self._batches = [self._clips(batch) for batch in layout.batches]
        self._test = self._clips(layout.test)

    def train_clips(self) -> Sequence[Clip]:
        return tuple(clip for batch in self._batches for clip in batch)

    def test_clips(self) -> Sequence[Clip]:
        return tuple(self._test)

    def listed_batches(self) -> Sequence[tuple[Part, ...]]:
        return tuple(
            tuple((clip, tuple(range(clip.length))) for clip in batch) for batch in self._batches
        )

    def _clips(self, recordings: Recordings) -> list[Clip]:
        return [
            self._clip(name, files)
            for name, files in recordings.items()
            if object_of(name) in self._labels and files
        ]

    def _clip(self, name: str, files: Sequence[Path]) -> Clip:
        size = self.size

        def reader(indices: Sequence[int]) -> Iterator[Frame]:
            for i in indices:
                yield from read_frames(files[i], (0,), size)

        return Clip(self._labels[object_of(name)], name, len(files), reader, files=True)


@dataclass(frozen=True)
class _Settings:
    factor: str
    lists: Path | None
    stride: int

    @classmethod
    def parse(cls, settings: Mapping[str, str]) -> _Settings:
        check_settings("openloris:PATH", settings, ["factor", "lists", "stride"])
        factor = settings.get("factor", "all")
        if factor not in LISTS:
            raise DataError(
                f"Expected factor={', '.join(FACTORS)} or all, got {factor!r}",
                "write for example ?factor=pixel",
            )
        lists = Path(settings["lists"]).expanduser() if "lists" in settings else None
        return cls(factor, lists, whole_setting(settings, "stride", 1, least=1))


def open_openloris(request: SourceRequest) -> OpenLorisSource:
    """Open `openloris:PATH?factor=all&lists=DIR&stride=1`; `stride` thins the test pictures.

    Every picture is checked first. A missing or unreadable picture is an error; with
    `skip_unreadable` it is left out.
    """
    settings = _Settings.parse(request.settings)
    path = Path(request.argument).expanduser()
    layout = find_layout(path, settings.factor, settings.lists)
    chosen = pick_classes(request.choice, layout.objects, of="openloris")
    labels = {layout.objects[number]: label for label, number in enumerate(chosen)}
    layout = Layout(
        [_of_objects(batch, labels) for batch in layout.batches],
        _of_objects(layout.test, labels),
        layout.objects,
    )
    recordings = [pair for part in (*layout.batches, layout.test) for pair in part.items()]
    missing = [name for name, files in recordings if not files]
    if not request.skip_unreadable:
        refuse_missing(missing, len(recordings), "recordings", path)
    layout = replace(layout, test=_thinned(layout.test, settings.stride))
    parts = (*layout.batches, layout.test)
    look = look_at(
        [file for part in parts for files in part.values() for file in files],
        on_progress=request.on_progress,
    )
    if not request.skip_unreadable:
        refuse_unreadable(look, path, name="openloris")
    if look.faults:
        lost = set(look.faults)
        layout = Layout(
            [_without(batch, lost) for batch in layout.batches],
            _without(layout.test, lost),
            layout.objects,
        )
    for number, batch in enumerate(layout.batches):
        if not any(batch.values()):
            raise DataError(
                f"Expected readable pictures in batch {number:02d} of openloris, got none",
                "unpack train.zip again",
            )
    stride = settings.stride
    return OpenLorisSource(
        layout,
        labels,
        protocol="ni" if settings.factor == "all" else f"ni, {settings.factor}",
        name="openloris" if stride == 1 else f"openloris (1 in {stride} test frames)",
        size=request.size,
        skipped=(*(f"{name} (missing)" for name in missing), *look.skipped(path)),
    )


def _of_objects(recordings: Recordings, labels: Mapping[str, int]) -> Recordings:
    return {name: files for name, files in recordings.items() if object_of(name) in labels}


def _without(recordings: Recordings, lost: set[Path]) -> Recordings:
    return {name: [f for f in files if f not in lost] for name, files in recordings.items()}


def _thinned(recordings: Recordings, stride: int) -> Recordings:
    """Keep every `stride`-th picture, counted over all recordings in their order."""
    pairs = [(name, file) for name, files in recordings.items() for file in files]
    kept: dict[str, list[Path]] = {}
    for name, file in pairs[::stride]:
        kept.setdefault(name, []).append(file)
    return kept
