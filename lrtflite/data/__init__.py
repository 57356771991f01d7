"""Frame sources and the streams of learning sessions cut from them.

A source has clips of labelled frames. `make_stream` cuts its training clips into batches; a device
learns one batch in one session. Frames are read only during iteration.
"""

from __future__ import annotations

from lrtflite.data.notes import source_notes
from lrtflite.data.registry import SourceEntry, open_source
from lrtflite.data.source import (
    Clip,
    Frame,
    FrameSource,
    ListedSource,
    Part,
    SourceRequest,
)
from lrtflite.data.stream import (
    Batch,
    StreamOptions,
    describe_stream,
    make_stream,
    ni_stream,
    nic_stream,
    whole_batch,
)
from lrtflite.data.unreadable import skipped_files, skipped_note

__all__ = [
    "Batch",
    "Clip",
    "Frame",
    "FrameSource",
    "ListedSource",
    "Part",
    "SourceEntry",
    "SourceRequest",
    "StreamOptions",
    "describe_stream",
    "make_stream",
    "ni_stream",
    "nic_stream",
    "open_source",
    "skipped_files",
    "skipped_note",
    "source_notes",
    "whole_batch",
]
