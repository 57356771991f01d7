"""Read regular files at given places; a read error that may pass is tried again.

A file may be anything that a hostile folder holds: a FIFO that never answers, a device that never
ends, a link out of the folder. Only a regular file is opened, and never waited for.
"""

from __future__ import annotations

import errno
import os
import stat
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar

from lrtflite.errors import NotRegular, TooShort

Result = TypeVar("Result")
# Seconds to wait before each further attempt to read.
PAUSES = (0.01, 0.05, 0.2)
# Errors of the moment: the same read may succeed later.
PASSING = frozenset(
    {errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.EINTR, errno.EBUSY}
)
# Bytes of a file that are read at a time.
CHUNK = 1 << 18


class Source(Protocol):
    """Bytes that can be read at any place: an open file, or bytes in RAM."""

    size: int
    name: str

    def read_into(self, out: memoryview, start: int) -> None:
        """Fill `out` with the bytes from `start` on, or raise TooShort or OSError."""
        ...


class FileSource:
    """An open regular file; it stays readable after its name is deleted."""

    def __init__(self, path: str | Path) -> None:
        self.name = str(path)
        self._handle = retry_transient(lambda: open_regular(path))
        weakref.finalize(self, os.close, self._handle)
        self.size = os.fstat(self._handle).st_size

    def read_into(self, out: memoryview, start: int) -> None:
        try:
            done = os.preadv(self._handle, [out], start)
        except OSError:
            done = 0  # the loop below tries again
        while done < len(out):
            got = self._read_some(out[done:], start + done)
            if not got:
                raise _too_short(self, len(out), start)
            done += got

    def _read_some(self, out: memoryview, start: int) -> int:
        return retry_transient(lambda: os.preadv(self._handle, [out], start))


class BytesSource:
    """Bytes in RAM that were checked already."""

    def __init__(self, content: bytes, name: str) -> None:
        self.name, self.size, self._content = name, len(content), content

    def read_into(self, out: memoryview, start: int) -> None:
        if start + len(out) > self.size:
            raise _too_short(self, len(out), start)
        out[:] = self._content[start : start + len(out)]


def open_regular(path: str | Path) -> int:
    """Open a regular file for reading and return its handle; raise NotRegular for anything else."""
    # O_NONBLOCK: opening a FIFO must not wait for a writer.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(path, flags)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise _not_regular(path) from error
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _not_regular(path)
    return handle


def read_whole(path: str | Path, *, most: int) -> bytes:
    """Return the content of a regular file of at most `most` bytes, or raise NotRegular."""
    source = FileSource(path)
    if source.size > most:
        raise NotRegular(
            f"Expected at most {most:,} bytes in {path}, got {source.size:,}", "copy it again"
        )
    content = bytearray(source.size)
    source.read_into(memoryview(content), 0)
    return bytes(content)


def retry_transient(read: Callable[[], Result]) -> Result:
    """Return what `read` returns; call it again after an error that may pass."""
    for pause in PAUSES:
        try:
            return read()
        except (OSError, MemoryError) as error:
            if isinstance(error, OSError) and error.errno not in PASSING:
                raise
            time.sleep(pause)
    return read()


def each_chunk(source: Source, end: int) -> Iterator[memoryview]:
    """Yield the first `end` bytes, CHUNK by CHUNK, in a buffer that is used again."""
    room = memoryview(bytearray(min(CHUNK, max(end, 1))))
    for start in range(0, end, CHUNK):
        part = room[: min(CHUNK, end - start)]
        source.read_into(part, start)
        yield part


def _too_short(source: Source, count: int, start: int) -> TooShort:
    return TooShort(
        f"Expected {count} bytes at {start} of {source.name}, got fewer", "copy the file again"
    )


def _not_regular(path: str | Path) -> NotRegular:
    return NotRegular(
        f"Expected a regular file at {path}, got a link, FIFO, device or folder", "copy it again"
    )
