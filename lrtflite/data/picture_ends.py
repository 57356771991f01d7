"""Detect a truncated picture file from its first and last bytes."""

from __future__ import annotations

import os
import stat
import struct
from dataclasses import dataclass
from pathlib import Path

_PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
_PNG_END = b"\x00\x00\x00\x00IEND\xaeB`\x82"


@dataclass(frozen=True)
class Ends:
    """The first 24 bytes, the last 12 bytes and the size of a file."""

    first: bytes
    last: bytes
    size: int

    @property
    def whole_png(self) -> tuple[int, int] | None:
        """Return width and height of a PNG with pixels and an end; None for any other file."""
        if self.first[:16] != _PNG or self.last != _PNG_END:
            return None
        width, height = struct.unpack(">II", self.first[16:24])
        return (width, height) if width and height else None

    @property
    def has_end(self) -> bool:
        """True if a PNG, JPEG, GIF or WebP has its end; False for any other format."""
        if self.first.startswith(_PNG[:8]):
            return self.last == _PNG_END
        if self.first.startswith(b"\xff\xd8"):
            return self.last.endswith(b"\xff\xd9")
        if self.first.startswith(b"GIF8"):
            return self.last.endswith(b";")
        if self.first[:4] == b"RIFF" and self.first[8:12] == b"WEBP":
            return 8 + int.from_bytes(self.first[4:8], "little") <= self.size
        return False


def ends_of(content: bytes) -> Ends:
    """Return the two ends of a picture in RAM; raise OSError if it is empty."""
    if not content:
        raise OSError("empty")
    return Ends(content[:24], content[-12:], len(content))


def read_ends(path: Path) -> Ends:
    """Read the two ends; raise OSError if the file is missing, empty or not a regular file."""
    # O_NONBLOCK, because opening a named pipe would wait for a writer.
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise OSError("not a file")
        if not found.st_size:
            raise OSError("empty")
        last = os.pread(file, 12, max(found.st_size - 12, 0))
        return Ends(os.pread(file, 24, 0), last, found.st_size)
    finally:
        os.close(file)
