"""Temporary folders that do not pile up: the next process removes those of a killed one."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lrtflite.errors import ConversionError, LrtfliteError
from lrtflite.files.deferred_signals import deferred_signals

PREFIX = "lrtflite-"
LOCK = "lrtflite.lock"
# Numbers of the errors of a disk without room.
FULL = (errno.ENOSPC, errno.EDQUOT)


class Scratch:
    """A temporary folder, in use while any process has its lock file open.

    `lock` is the file descriptor; a child process that inherits it uses the folder too. Creating a
    new folder removes the folders with the same `prefix` that no process uses any more.
    """

    def __init__(self, *, prefix: str = PREFIX, parent: Path | None = None) -> None:
        if parent is None:
            try:
                self._make(Path(tempfile.gettempdir()), prefix)
            except OSError as error:
                raise no_room(error.strerror or str(error)) from error
        else:
            self._make(parent, prefix)

    def _make(self, parent: Path, prefix: str) -> None:
        _sweep(parent, prefix)
        with deferred_signals():
            self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
            unlocked = self.path / f"{LOCK}.new"
            self.lock = os.open(unlocked, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self.lock, fcntl.LOCK_EX)
            unlocked.rename(self.path / LOCK)  # a file of this name is always locked

    def remove(self) -> None:
        """Remove the folder; a second call does nothing."""
        with deferred_signals():
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
    """Put all temporary files of the block, including those of libraries, into one `Scratch`.

    Raise LrtfliteError if there is no room for them.
    """
    before = tempfile.tempdir
    with scratch_folder() as folder:
        tempfile.tempdir = str(folder)
        try:
            yield
        except Exception as error:
            if _is_for_lack_of_room(error, folder):
                raise no_room(os.strerror(errno.ENOSPC)) from error
            raise
        finally:
            tempfile.tempdir = before


def no_room(why: str) -> LrtfliteError:
    """Return the error for a full disk under the folder of temporary files."""
    where = os.environ.get("TMPDIR") or tempfile.gettempdir()
    return LrtfliteError(
        f"Cannot write temporary files in {where}: {why}",
        "free some space, or set TMPDIR to a folder with more",
    )


def _is_for_lack_of_room(error: BaseException | None, folder: Path) -> bool:
    """Return whether an error, or one that led to it, is about a full disk and this folder.

    TensorFlow and the TFLite converter raise their own errors, which say so only in their text.
    An error of this project that names another place, such as --out, is about that place.
    """
    is_ours = isinstance(error, LrtfliteError) and not isinstance(error, ConversionError)
    while error is not None:
        text = str(error)
        is_full = isinstance(error, OSError) and error.errno in FULL
        is_full |= os.strerror(errno.ENOSPC) in text
        if is_full and (not is_ours or str(folder) in text):
            return True
        error = error.__cause__ or error.__context__
    return False


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
