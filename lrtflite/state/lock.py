"""The lock of a state folder: one process may write it at a time.

The folder itself is locked, not a file in it: there is nothing to delete, and nothing that could be
a FIFO. The operating system releases the lock when its process ends, however it ends. A fork lets
go of it at once, so that it cannot keep the folder of a parent that has closed it or was killed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import weakref
from contextlib import suppress
from pathlib import Path

from lrtflite.errors import StateError

_held: weakref.WeakSet[FolderLock] = weakref.WeakSet()


class FolderLock:
    """A lock that this process holds until `release`."""

    def __init__(self, folder: Path) -> None:
        """Lock a folder; raise StateError if another process has it, OSError if locking fails."""
        self._folder, self._process = folder, os.getpid()
        self._handle: int | None = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.release()
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            raise StateError(
                f"{folder} is in use by another learner", "close that one, or use another path"
            ) from error
        _held.add(self)

    def check(self) -> None:
        """Raise StateError unless this process may write the folder that it locked."""
        if self._handle is None or os.getpid() != self._process:
            raise StateError(
                f"Expected the process that opened {self._folder}, got a fork of it",
                "open the state again in this process",
            )
        try:
            there = os.stat(self._folder)
        except OSError as error:
            raise StateError(
                f"Cannot save to {self._folder}: {error.strerror}",
                "the folder was moved or deleted, open the state again",
            ) from error
        if not os.path.samestat(there, os.fstat(self._handle)):
            raise StateError(
                f"Expected the folder {self._folder} that was opened, got another one in its place",
                "open the state again",
            )

    def release(self) -> None:
        if self._handle is not None:
            if os.getpid() == self._process:
                # A fork may not have closed its copy of the handle yet, which keeps the lock.
                with suppress(OSError):
                    fcntl.flock(self._handle, fcntl.LOCK_UN)
            os.close(self._handle)
            self._handle = None


def _let_go() -> None:
    for lock in list(_held):
        lock.release()


os.register_at_fork(after_in_child=_let_go)
