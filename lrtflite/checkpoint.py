"""The state folder on disk: each state is written completely or not at all, even if power fails.

The folder holds generations, `state-00000007.npz`, one per committed change. A commit writes a file
with `replacing`, so a power cut leaves either the old generation or the new one, never half a file.
The previous generation is kept for undo; older ones are removed after the commit.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO

from lrtflite.errors import DamagedState, StateError
from lrtflite.state_file import State, read_state, write_state
from lrtflite.undisturbed import undisturbed
from lrtflite.whole_file import LEFTOVERS, flush_folder

# Number of generations that a commit keeps: the newest, and the previous one for undo.
KEPT_GENERATIONS = 2
_NAME = re.compile(r"state-(\d{8})\.npz")
_OWN = re.compile(r"lock|state-\d{8}\.(npz|tmp|damaged)")
_log = logging.getLogger("lrtflite")


def newest_state(folder: str | Path) -> State:
    """Read the newest generation of a state folder, without taking its lock."""
    generations = _generations(Path(folder))
    if not generations:
        raise _no_state(folder)
    return read_state(generations[-1])


class Checkpoint:
    """A state folder, locked by one learner at a time; `read_only` neither locks nor writes it.

    A folder opened read-only may belong to a learner that keeps committing. Its newest generation
    can disappear before it is read, once a later one exists.
    """

    def __init__(self, folder: str | Path, *, read_only: bool = False) -> None:
        self.folder = Path(folder)
        self._read_only = read_only
        self._lock: IO[str] | None = None
        if read_only:
            if not _generations(self.folder):
                raise _no_state(self.folder)
        else:
            self._take()

    def _take(self) -> None:
        advice = "choose a folder that can be written, or open it with read_only=True to predict"
        with _disk_errors(f"Cannot use {self.folder} as a state folder", advice):
            self.folder.mkdir(parents=True, exist_ok=True)
            names = [path.name for path in self.folder.iterdir()]
            if names and not any(map(_OWN.fullmatch, names)):
                raise StateError(
                    f"Expected a state folder, or a new or empty one, got {self.folder} with "
                    f"{min(names)} in it; choose another path"
                )
            lock = (self.folder / "lock").open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.close()
            raise StateError(
                f"{self.folder} is in use by another learner; close that one, or use another path"
            ) from error
        self._lock = lock
        # Earlier versions named their temporary files `*.tmp`.
        for pattern in ("*.tmp", LEFTOVERS):
            for leftover in self.folder.glob(pattern):
                with contextlib.suppress(OSError):
                    leftover.unlink()

    def load(self, *, later: Collection[str] = ()) -> State | None:
        """Return the newest intact generation, or None in a new folder; `later`: see `read_state`.

        A damaged generation is renamed out of the way, and the previous one is used.
        """
        generations = _generations(self.folder)
        for path in reversed(generations):
            try:
                return read_state(path, later=later)
            except DamagedState:
                if path == generations[0]:
                    raise
                _log.warning("The state file %s is damaged; using the generation before it", path)
                if not self._read_only:
                    path.replace(path.with_suffix(".damaged"))
        return None

    def commit(self, state: State) -> None:
        """Write `state` as the newest generation; on any failure the current one stays."""
        generations = _generations(self.folder)
        number = _number(generations[-1]) + 1 if generations else 0
        path = self.folder / f"state-{number:08d}.npz"
        intact = f"Cannot save to {self.folder}, the state before is intact"
        # zipfile turns an interrupt into a ValueError.
        with _disk_errors(intact, "check the disk, then try again"), undisturbed():
            try:
                write_state(path, state)
            except BaseException:
                # The new name may not be flushed, so it might or might not survive a power cut.
                path.unlink(missing_ok=True)
                raise
        for old in generations[: 1 - KEPT_GENERATIONS]:
            with contextlib.suppress(OSError):  # the next commit tries again
                old.unlink()

    def previous(self, *, later: Collection[str] = ()) -> State:
        """Return the generation before the newest; `later`: see `read_state`."""
        generations = _generations(self.folder)
        if len(generations) < KEPT_GENERATIONS:
            raise StateError("Nothing to undo: no earlier state is kept; make a change first")
        return read_state(generations[-2], later=later)

    def drop_newest(self) -> None:
        """Delete the newest generation; the previous one becomes current."""
        with _disk_errors(f"Cannot undo in {self.folder}", "check that it can be written"):
            _generations(self.folder)[-1].unlink()
            flush_folder(self.folder)

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()


def _no_state(folder: str | Path) -> StateError:
    return StateError(
        f"Expected a state folder, got {folder} with no state-*.npz in it; check the path"
    )


def _generations(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("state-*.npz") if _NAME.fullmatch(path.name))


def _number(path: Path) -> int:
    match = _NAME.fullmatch(path.name)
    assert match is not None  # _generations lists no other names
    return int(match[1])


@contextlib.contextmanager
def _disk_errors(what: str, advice: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StateError(f"{what}: {error.strerror or error}; {advice}") from error
