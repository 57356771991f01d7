"""Frame sources and the streams of learning sessions cut from them.

A source gives clips of labelled frames, `make_stream` cuts its training clips into batches: what a
device sees in one learning session each. Frames are read only when someone iterates over them.
"""

from __future__ import annotations

from lrtflite.data.source import Clip, Frame, FrameSource, ListedSource, Part, open_source
from lrtflite.data.stream import (
    Batch,
    StreamOptions,
    describe_stream,
    make_stream,
    nic_stream,
    whole_batch,
)

__all__ = [
    "Batch",
    "Clip",
    "Frame",
    "FrameSource",
    "ListedSource",
    "Part",
    "StreamOptions",
    "describe_stream",
    "make_stream",
    "nic_stream",
    "open_source",
    "whole_batch",
]
