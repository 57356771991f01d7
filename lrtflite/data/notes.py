"""Remarks on a data set to print next to a result."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from lrtflite.data.source import FrameSource
from lrtflite.data.unreadable import skipped_note


@runtime_checkable
class NotedSource(FrameSource, Protocol):
    """A source with remarks on how it divides its frames into training and test."""

    @property
    def notes(self) -> tuple[str, ...]: ...


def source_notes(source: FrameSource) -> tuple[str, ...]:
    """Return remarks on files left out of a source and on causes of optimistic figures."""
    skipped = skipped_note(source)
    notes = source.notes if isinstance(source, NotedSource) else ()
    return notes if skipped is None else (skipped, *notes)
