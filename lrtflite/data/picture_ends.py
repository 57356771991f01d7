"""Tell from the first and last bytes of a picture file whether it is whole."""

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
    """The first 24 and the last 12 bytes of a file, and how many it has."""

    head: bytes
    tail: bytes
    size: int

    @property
    def is_whole_png(self) -> bool:
        """Whether it begins with the header of a PNG that has pixels, and ends as one."""
        if self.head[:16] != _PNG or self.tail != _PNG_END:
            return False
        width, height = struct.unpack(">II", self.head[16:24])
        return bool(width and height)

    @property
    def has_end(self) -> bool:
        """Whether it ends as a PNG, JPEG, GIF or WebP does; False for any other format."""
        if self.head.startswith(_PNG[:8]):
            return self.tail == _PNG_END
        if self.head.startswith(b"\xff\xd8"):
            return self.tail.endswith(b"\xff\xd9")
        if self.head.startswith(b"GIF8"):
            return self.tail.endswith(b";")
        if self.head[:4] == b"RIFF" and self.head[8:12] == b"WEBP":
            return 8 + int.from_bytes(self.head[4:8], "little") <= self.size
        return False


def read_ends(path: Path) -> Ends:
    """Read the two ends; OSError if there is no such file, or an empty one."""
    # O_NONBLOCK: to open a named pipe would wait for someone who writes to it.
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise OSError("not a file")
        if not found.st_size:
            raise OSError("empty")
        tail = os.pread(file, 12, max(found.st_size - 12, 0))
        return Ends(os.pread(file, 24, 0), tail, found.st_size)
    finally:
        os.close(file)
