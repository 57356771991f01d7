"""Temporary folders that do not pile up: the next process removes those of a killed one."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lrtflite.files.deferred_signals import undisturbed

PREFIX = "lrtflite-"
LOCK = "lrtflite.lock"


class Scratch:
    """A temporary folder, in use while any process has its lock file open.

    `lock` is the file descriptor; a child process that inherits it uses the folder too. Creating a
    new folder removes the folders with the same `prefix` that no process uses any more.
    """

    def __init__(self, *, prefix: str = PREFIX, parent: Path | None = None) -> None:
        parent = parent or Path(tempfile.gettempdir())
        _sweep(parent, prefix)
        with undisturbed():
            self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
            unlocked = self.path / f"{LOCK}.new"
            self.lock = os.open(unlocked, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self.lock, fcntl.LOCK_EX)
            unlocked.rename(self.path / LOCK)  # a file of this name is always locked

    def remove(self) -> None:
        """Remove the folder; a second call does nothing."""
        with undisturbed():
            shutil.rmtree(self.path, ignore_errors=True)
            if self.lock >= 0:
                os.close(self.lock)
                self.lock = -1


@contextmanager
def scratch_folder(*, prefix: str = PREFIX, parent: Path | None = None) -> Iterator[Path]:
    """Make a `Scratch` and remove it at the end of the block."""
    scratch = Scratch(prefix=prefix, parent=parent)
    try:
        yield scratch.path
    finally:
        scratch.remove()


@contextmanager
def scratch_tempdir() -> Iterator[None]:
    """Put all temporary files of the block, including those of libraries, into one `Scratch`."""
    before = tempfile.tempdir
    with scratch_folder() as folder:
        tempfile.tempdir = str(folder)
        try:
            yield
        finally:
            tempfile.tempdir = before


def _sweep(parent: Path, prefix: str) -> None:
    """Remove folders of this user's dead processes; skip those that cannot be removed."""
    for folder in parent.glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            found = folder.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
                continue
            # A folder without a lock file is just being created, or belongs to another program.
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
