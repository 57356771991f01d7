"""Put an uploaded state in the place of another, whose folder gets a new name.

mug.state            becomes  mug.state-before-20260131-140500
mug.state.pictures   becomes  mug.state.pictures-before-20260131-140500

Pictures, old state, new state are renamed in this order. A kill in between is undone by `recover`.
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lrtflite import Learner
from lrtflite.errors import DamagedState, StateError
from lrtflite.files.atomic import flush_folder, write_atomic
from lrtflite.files.scratch import Scratch, scratch_folder
from lrtflite.pictures import KeptPictures
from lrtflite.state.folder import StateFolder
from lrtflite.state.reading import read_opened
from lrtflite_serve.service.disk import disk_errors
from lrtflite_serve.transfers.archive import unpack_state

# Prefix of the folder in which an uploaded state is unpacked, next to the state.
UPLOAD_PREFIX = ".upload-"
# Names in this folder: of the state until it is put in place, and of the file with the stamp.
NEW, STAMP = "state", "stamp"
_STAMP = re.compile(r"\d{8}-\d{6}(-\d{1,3})?", re.ASCII)

Open = Callable[[Path, bool], Learner]


@contextmanager
def unpacked(archive: Path, state: Path, opened: Open) -> Iterator[Path]:
    """Yield a folder with an uploaded state that `opened(folder, read_only)` has opened once.

    The folder is next to the state, on its file system, and is removed unless it was moved.
    """
    with (
        disk_errors("take the state"),
        scratch_folder(prefix=UPLOAD_PREFIX, parent=state.parent) as scratch,
    ):
        folder = scratch / NEW
        folder.mkdir()
        unpack_state(archive, folder)
        _check_whole(folder)
        opened(folder, True).close()
        (folder / "checked.json").unlink(missing_ok=True)
        yield folder


def _check_whole(folder: Path) -> None:
    """Raise StateError unless the newest generation in a folder is whole.

    A learner would use an earlier one, or go on without lost rows; an upload is sent again.
    """
    found = StateFolder(folder)
    newest = next(found.opened(), None)
    if newest is None or found.damaged:
        raise StateError("Expected a whole state, got a damaged one", "download it again")
    try:
        read_opened(newest)
    except DamagedState as error:
        raise StateError(
            "Expected a whole state, got a damaged one", "download it again"
        ) from error


def swap(new: Path, state: Path) -> str:
    """Put the folder `new` in the place of a state, without pictures; return the stamp of the old.

    After an error, everything is in its place again.
    """
    stamp = _free_stamp(state)
    with disk_errors("set the state aside"):
        write_atomic(new.parent / STAMP, stamp)
        try:
            for path in _belongings(state):
                if os.path.lexists(path):
                    path.rename(aside(path, stamp))
            new.rename(state)
        except BaseException:
            _put_back(state, stamp)
            raise
        flush_folder(state.parent)
    return stamp


def swap_back(new: Path, state: Path, stamp: str) -> None:
    """Undo `swap`."""
    state.rename(new)
    _put_back(state, stamp)
    flush_folder(state.parent)


def recover(state: Path) -> None:
    """Put a state and its pictures back if the service was killed while it was being replaced.

    The new state is still unpacked then, next to the stamp of the old one.
    """
    if not state.parent.is_dir():
        return
    uploads = [each for each in state.parent.iterdir() if each.name.startswith(UPLOAD_PREFIX)]
    with disk_errors("put the state back"):
        for upload in uploads:
            if (upload / NEW).is_dir() and (stamp := _read_stamp(upload / STAMP)):
                _put_back(state, stamp)
    if uploads:
        with suppress(OSError):  # removes those of dead processes
            Scratch(prefix=UPLOAD_PREFIX, parent=state.parent).remove()


def set_aside(state: Path) -> list[Path]:
    """Return the states and pictures that were set aside, oldest first."""
    if not state.parent.is_dir():
        return []
    found = []
    for path in _belongings(state):
        prefix = aside(path, "").name
        for other in state.parent.iterdir():
            if other.name.startswith(prefix) and _STAMP.fullmatch(other.name[len(prefix) :]):
                found.append(other)
    return sorted(found, key=lambda path: path.name.rpartition("-before-")[2])


def aside(path: Path, stamp: str) -> Path:
    """Return the name of a state or its pictures once they are set aside."""
    return path.with_name(f"{path.name}-before-{stamp}")


def pictures_of(state: Path) -> Path:
    return KeptPictures.beside(state).folder


def _belongings(state: Path) -> tuple[Path, Path]:
    return pictures_of(state), state


def _put_back(state: Path, stamp: str) -> None:
    """Give a state and its pictures their names again, where nothing else has them."""
    for path in reversed(_belongings(state)):
        if os.path.lexists(aside(path, stamp)) and not os.path.lexists(path):
            aside(path, stamp).rename(path)


def _read_stamp(path: Path) -> str | None:
    with suppress(OSError, ValueError):
        text = path.read_text(encoding="ascii")
        if _STAMP.fullmatch(text):
            return text
    return None


def _free_stamp(state: Path) -> str:
    """Return the time as part of a name, such that nothing has this name yet."""
    now = time.strftime("%Y%m%d-%H%M%S")
    for number in range(1000):
        stamp = now + (f"-{number}" if number else "")
        if not any(os.path.lexists(aside(path, stamp)) for path in _belongings(state)):
            return stamp
    raise OSError(errno.EEXIST, os.strerror(errno.EEXIST), str(state))
