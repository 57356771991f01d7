"""Count the clips and frames of each class of a data set, for training and for testing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lrtflite.data.detail import lost_detail_note
from lrtflite.data.listing import first_few
from lrtflite.data.notes import source_notes
from lrtflite.data.source import Clip, FrameSource, ListedSource


@dataclass(frozen=True)
class Amount:
    """A number of clips and of the frames in them. A picture is a clip of one frame."""

    clips: int
    frames: int

    @classmethod
    def of(cls, clips: Sequence[Clip]) -> Amount:
        """Count clips and their frames."""
        return cls(len(clips), sum(clip.length for clip in clips))


@dataclass(frozen=True)
class ClassOverview:
    """One class, with its training and test amounts; `kind` comes from `kind_of`."""

    name: str
    kind: str
    train: Amount
    test: Amount


@dataclass(frozen=True)
class Overview:
    """A data set: its classes in their order, totals, and remarks for the reader.

    `protocol` and `sessions` (a number) describe published batches; without them, both are None.
    """

    dataset: str
    size: int
    classes: tuple[ClassOverview, ...]
    train: Amount
    test: Amount
    protocol: str | None
    sessions: int | None
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def overview(source: FrameSource) -> Overview:
    """Count the clips and frames of a source; of files, only headers are read."""
    train, test = _by_label(source.train_clips()), _by_label(source.test_clips())
    classes = tuple(
        ClassOverview(
            name,
            kind_of([*train.get(label, ()), *test.get(label, ())]),
            Amount.of(train.get(label, ())),
            Amount.of(test.get(label, ())),
        )
        for label, name in enumerate(source.classes)
    )
    listed = source if isinstance(source, ListedSource) else None
    detail = lost_detail_note(source)
    return Overview(
        dataset=source.name,
        size=source.size,
        classes=classes,
        train=Amount.of(source.train_clips()),
        test=Amount.of(source.test_clips()),
        protocol=listed.protocol if listed else None,
        sessions=len(listed.listed_batches()) if listed else None,
        notes=(*source_notes(source), *_empty_sides(classes), *filter(None, [detail])),
    )


def kind_of(clips: Sequence[Clip]) -> str:
    """Return "pictures", "videos", "pictures and videos" or "nothing"."""
    kinds = {"videos" if clip.length > 1 else "pictures" for clip in clips}
    return " and ".join(sorted(kinds)) or "nothing"


def _by_label(clips: Sequence[Clip]) -> dict[int, list[Clip]]:
    found: dict[int, list[Clip]] = {}
    for clip in clips:
        found.setdefault(clip.label, []).append(clip)
    return found


def _empty_sides(classes: Sequence[ClassOverview]) -> Iterator[str]:
    """Yield remarks on classes without training frames or without test frames."""
    untaught = [each.name for each in classes if not each.train.frames]
    untested = [each.name for each in classes if not each.test.frames]
    for names, lack in ((untaught, "no training frames"), (untested, "no test frames")):
        if names:
            yield f"{first_few(names)}: {lack}."
