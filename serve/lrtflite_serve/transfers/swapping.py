"""Put an uploaded state in the place of another, whose folder gets a new name."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lrtflite import Learner
from lrtflite.errors import DamagedState, StateError
from lrtflite.files.atomic import flush_folder
from lrtflite.files.scratch import scratch_folder
from lrtflite.state.folder import StateFolder
from lrtflite.state.reading import read_opened
from lrtflite_serve.service.disk import disk_errors
from lrtflite_serve.transfers.archive import unpack_state

# Prefix of the folder in which an uploaded state is unpacked, next to the state.
UPLOAD_PREFIX = ".upload-"
# Word in the name of a state that was replaced.
BEFORE = "before"

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
        folder = scratch / "state"
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


def swap(new: Path, state: Path) -> Path:
    """Put the folder `new` in the place of a state, and return the new path of the old one."""
    aside = free_name(state)
    with disk_errors("set the state aside"):
        state.rename(aside)
        try:
            new.rename(state)
        except BaseException:
            aside.rename(state)
            raise
        flush_folder(state.parent)
    return aside


def swap_back(aside: Path, state: Path) -> None:
    """Undo `swap`; what was put there gets the name of a refused state."""
    state.rename(free_name(state, word="refused"))
    aside.rename(state)
    flush_folder(state.parent)


def recover(state: Path) -> None:
    """Put a state back in its place if the service was killed while it was being replaced.

    Between the two renames of `swap` there is no state, and the unpacked one is still there.
    """
    if os.path.lexists(state) or not state.parent.is_dir():
        return
    found = sorted(state.parent.iterdir())
    uploads = [path for path in found if path.name.startswith(UPLOAD_PREFIX)]
    before = [path for path in found if path.name.startswith(f"{state.name}-{BEFORE}-")]
    if before and any((path / "state").is_dir() for path in uploads):
        with disk_errors("put the state back"):
            before[-1].rename(state)


def free_name(path: Path, *, word: str = BEFORE) -> Path:
    """Return a name next to `path` that nothing has, with the time in it."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for number in range(1000):
        found = path.with_name(f"{path.name}-{word}-{stamp}" + (f"-{number}" if number else ""))
        if not os.path.lexists(found):
            return found
    raise OSError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
