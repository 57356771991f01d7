"""Give back the RAM of a file that a runtime has mapped and does not read again."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

_MAPS = Path("/proc/self/maps")
# Number of `madvise` that drops pages, on Linux. Pages of a file that nobody writes come back from
# the file when they are read.
_MADV_DONTNEED = 4


def release_pages(path: Path) -> int:
    """Drop the pages of a file that is mapped into this process; return their range in bytes.

    A runtime that packs weights for its kernels has every weight twice: packed, and in the mapped
    file, which it read once. Return 0 where the system cannot do it, or nothing is mapped.
    """
    if sys.platform != "linux":
        return 0
    released = 0
    for start, end in _ranges(os.path.realpath(path)):
        if _madvise(start, end - start) == 0:
            released += end - start
    return released


def _ranges(path: str) -> list[tuple[int, int]]:
    """Return the addresses that a file is mapped to, read-only."""
    try:
        lines = _MAPS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        addresses, rights, *rest = line.split(maxsplit=5)
        # Private pages that were written to would be lost.
        if len(rest) == 4 and rest[3] == path and "w" not in rights:
            start, end = addresses.split("-")
            found.append((int(start, 16), int(end, 16)))
    return found


def _madvise(start: int, size: int) -> int:
    try:
        call = ctypes.CDLL(None).madvise
    except (AttributeError, OSError):
        return -1
    return int(call(ctypes.c_void_p(start), ctypes.c_size_t(size), ctypes.c_int(_MADV_DONTNEED)))
