"""The lock of a state folder: one process may write it at a time.

The folder itself is locked, not a file in it: there is nothing to delete, and nothing that could be
a FIFO. The operating system releases the lock when its process ends, however it ends.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from lrtflite.errors import StateError


class FolderLock:
    """A lock that this process holds until `release`."""

    def __init__(self, folder: Path) -> None:
        """Lock a folder, or raise StateError if another process has, OSError if it cannot be."""
        self._folder, self._process = folder, os.getpid()
        self._handle: int | None = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.release()
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            raise StateError(
                f"{folder} is in use by another learner; close that one, or use another path"
            ) from error

    def check(self) -> None:
        """Raise StateError unless this process may write the folder that it locked."""
        if self._handle is None or os.getpid() != self._process:
            raise StateError(
                f"Expected the process that opened {self._folder}, got a fork of it; "
                "open the state again in this process"
            )
        try:
            there = os.stat(self._folder)
        except OSError as error:
            raise StateError(
                f"Cannot save to {self._folder}: {error.strerror}; the folder was moved or "
                "deleted, open the state again"
            ) from error
        if not os.path.samestat(there, os.fstat(self._handle)):
            raise StateError(
                f"Expected the folder {self._folder} that was opened, got another one in its "
                "place; open the state again"
            )

    def release(self) -> None:
        if self._handle is not None:
            # A fork must not unlock the folder of its parent, and closing does not.
            os.close(self._handle)
            self._handle = None
