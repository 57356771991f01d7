"""Frames that are read from their files whenever they are needed, instead of being kept in RAM."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.data import Part

# Maximum size in bytes of the frames of a set that are kept in RAM. A larger set is streamed.
MAX_FRAME_BYTES = 512 << 20


class StreamedFrames:
    """The frames (N, S, S, 3) uint8 of some clips; indexing reads them.

    It supports what training needs of an array: its length, slices, and arrays of rows in any
    order, with repeats.
    """

    dtype = np.dtype(np.uint8)

    def __init__(self, parts: Sequence[Part], size: int) -> None:
        self._parts = parts
        self._starts = np.cumsum([0, *(len(indices) for _, indices in parts)])
        self.shape = (int(self._starts[-1]), size, size, 3)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | NDArray[Any]) -> NDArray[np.uint8]:
        wanted = np.arange(len(self))[rows]
        found = np.empty((len(wanted), *self.shape[1:]), np.uint8)
        clips = np.searchsorted(self._starts, wanted, side="right") - 1
        for number in np.unique(clips):
            clip, indices = self._parts[number]
            places = np.flatnonzero(clips == number)
            # Clips are read in ascending order, each frame once.
            within, again = np.unique(wanted[places] - self._starts[number], return_inverse=True)
            for place, frame in enumerate(clip.read([indices[i] for i in within])):
                found[places[again == place]] = frame
        return found

    def checksum(self, start: int) -> int:
        """Return a checksum of the names and numbers of the frames, which are not read."""
        for clip, indices in self._parts:
            start = zlib.crc32(f"{clip.name}:{clip.length}:{indices}".encode(), start)
        return start


def is_streamed(parts: Sequence[Part], size: int) -> bool:
    """Return whether a set is too large for RAM and each of its frames is a file of its own."""
    count = sum(len(indices) for _, indices in parts)
    return count * size * size * 3 > MAX_FRAME_BYTES and all(clip.files for clip, _ in parts)
