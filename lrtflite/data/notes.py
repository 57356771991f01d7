"""What the reader of a result should know about its data set."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from lrtflite.data.source import FrameSource
from lrtflite.data.unreadable import skipped_note


@runtime_checkable
class NotedSource(FrameSource, Protocol):
    """A source that has something to say about how it divides its frames."""

    @property
    def notes(self) -> tuple[str, ...]: ...


def source_notes(source: FrameSource) -> tuple[str, ...]:
    """Say what was left out of a source, and what makes its figures better than they should be."""
    skipped = skipped_note(source)
    notes = source.notes if isinstance(source, NotedSource) else ()
    return notes if skipped is None else (skipped, *notes)
