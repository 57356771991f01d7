"""The state folder on disk: each state is written completely or not at all, even if power fails.

The folder holds generations, `state-00000007.safetensors`, one per committed change, and the files
that they name. A commit writes new files and flushes them, then renames a generation into place.
INVARIANT: a file that a kept generation names is never changed. docs/state.md has the format.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from lrtflite.errors import StateError
from lrtflite.files.atomic import flush_folder
from lrtflite.files.deferred_signals import undisturbed
from lrtflite.files.reading import FileSource
from lrtflite.files.tensors import TensorFile
from lrtflite.replay.memory import Content
from lrtflite.state.folder import (
    StateFolder,
    is_foreign,
    kept,
    name_of,
    next_number,
    number_of,
    numbers,
    unfinished,
    unused,
)
from lrtflite.state.form import StateForm
from lrtflite.state.lock import FolderLock
from lrtflite.state.reading import Opened, State, open_state, read_opened, reading
from lrtflite.state.record import Record
from lrtflite.state.writing import Written, digest_of, write_generation

FULL = (errno.ENOSPC, errno.EDQUOT)


class Checkpoint(StateFolder):
    """A state folder, locked by one learner at a time; `read_only` neither locks nor writes it.

    A folder opened read-only may belong to a learner that keeps committing. Its newest generation
    can disappear before it is read, once a later one exists.
    """

    def __init__(self, folder: str | Path, *, read_only: bool = False) -> None:
        super().__init__(folder)
        self._read_only = read_only
        self._lock: FolderLock | None = None
        self._current: Written | None = None
        try:
            if not read_only:
                self._take()
            self.check_names(may_be_new=not read_only)
        except BaseException:
            self.close()
            raise

    def _take(self) -> None:
        advice = "choose a folder that can be written, or open it with read_only=True to predict"
        with _disk_errors(f"Cannot use {self.folder} as a state folder", advice):
            _make_folder(self.folder)
            names = self.names()
            if is_foreign(names):
                raise StateError(
                    f"Expected a state folder, or a new or empty one, got {self.folder} with "
                    f"{min(names)} in it; choose another path"
                )
            self._lock = FolderLock(self.folder)
        for name in unfinished(names):
            with contextlib.suppress(OSError):
                os.unlink(self.folder / name)

    def took(self, opened: Opened, state: State) -> None:
        """Go on from a generation that was read: the next commit writes what differs from it.

        Damaged generations are renamed only now, so that a folder without a whole one is unchanged.
        """
        place = {}
        for named in opened.record.tensors:
            path = self.folder / named.name
            with reading(path):
                place.update(dict.fromkeys(TensorFile(FileSource(path)).entries, named.name))
        # An array in the generation itself replaces an earlier one of the same name.
        place.update(dict.fromkeys(opened.file.entries, ""))
        self._current = Written(
            number_of(opened.path),
            opened.record,
            {
                name: (digest_of(values), place.get(name, ""))
                for name, values in state.arrays.items()
            },
        )
        while self.damaged:
            path = self.damaged.pop()
            if path == opened.path:
                continue
            # A disk that cannot be written keeps the file; the next commit has a higher number.
            with contextlib.suppress(OSError):
                os.replace(path, path.with_suffix(".damaged"))

    def load(self, form: StateForm | None = None) -> State | None:
        """Return the newest whole generation, or None in a new folder."""
        if self.is_new:
            return None

        def take(opened: Opened, salvage: bool) -> State:
            state = read_opened(opened, form, salvage=salvage)
            self.took(opened, state)
            return state

        return self.newest(take)

    def commit(self, state: State, *, frees: bool = False) -> Content:
        """Write `state` as the newest generation; on any failure the current one stays.

        Return the memory with its rows on the disk. If the disk is full and the change `frees`
        space, the generations for undo are deleted to make room.
        """
        undo = None if self._current is None else self._current.number
        with undisturbed():
            try:
                return self._commit(state, undo=undo)
            except StateError as error:
                full = isinstance(error.__cause__, OSError) and error.__cause__.errno in FULL
                if not (frees and full):
                    raise
            self._drop_all_but_newest()
            return self._commit(state, undo=None, compact=False)

    def previous(self) -> Opened:
        """Return the generation that `undo` returns to."""
        wanted = None if self._current is None else self._current.record.undo
        if wanted is None or wanted not in numbers(self.names()):
            raise StateError("Nothing to undo: no earlier state is kept; make a change first")
        return open_state(self.folder / name_of("state", wanted))

    def undo(self, previous: Opened, state: State) -> Content:
        """Write the previous generation again, as the newest one, and delete the one undone.

        The previous generation stays too, as a spare.
        """
        undone = self._current
        assert undone is not None  # `previous` found one
        with undisturbed():
            self.took(previous, state)
            try:
                return self._commit(state, undo=None, undoes=undone.number)
            except BaseException:
                self._current = undone
                raise

    def close(self) -> None:
        if self._lock is not None:
            self._lock.release()

    def _commit(
        self,
        state: State,
        *,
        undo: int | None,
        compact: bool = True,
        undoes: int | None = None,
    ) -> Content:
        assert self._lock is not None  # a reader does not commit
        self._lock.check()
        number, files = next_number(self.names()), list[Path]()
        path = self.folder / name_of("state", number)
        try:
            spares = self._spares(undoes)
            before = self._current or Written(-1, Record({}))
            written, content = write_generation(
                self.folder, before, number, state, undo, files, spares, compact=compact
            )
        except BaseException as error:
            in_place = self._withdraw(path, files)
            if not isinstance(error, OSError):
                raise
            known = (
                "the new state is in place, but a power cut may still undo it"
                if in_place
                else "the state before is intact"
            )
            raise StateError(
                f"Cannot {'save to' if undoes is None else 'undo in'} {self.folder}, {known}: "
                f"{error.strerror or error}; check the disk, then try again"
            ) from error
        self._current = written
        self.records[number] = written.record
        if undoes is not None:
            self._forget_generation(undoes)
        self._prune()
        return content

    def _spares(self, undone: int | None) -> list[frozenset[str]]:
        """Return the names of the tensors of each generation that stays."""
        there = [number for number in numbers(self.names()) if number != undone]
        records = (self.record(number) for number in there)
        return [
            frozenset(named.name for named in record.tensors) for record in records if record.meta
        ]

    def _withdraw(self, path: Path, files: list[Path]) -> bool:
        """Remove what a failed commit wrote; return whether its generation is still in place."""
        # Its name may not be flushed, so it might or might not survive a power cut.
        with contextlib.suppress(OSError):
            os.unlink(path)
        if os.path.lexists(path):
            return True
        for file in files:
            with contextlib.suppress(OSError):
                os.unlink(file)
        return False

    def _prune(self) -> None:
        """Delete the generations and files that are not needed; the next commit tries again."""
        with contextlib.suppress(OSError, StateError):
            names = self.names()
            # A generation that cannot be read now may name any file, and ends this here.
            records = {number: self.record(number) for number in numbers(names)}
            stay = kept({number: each for number, each in records.items() if each.meta})
            for number in set(records) - stay:
                self._forget_generation(number)
            for name in unused(names, [records[number] for number in stay]):
                os.unlink(self.folder / name)

    def _forget_generation(self, number: int) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self.folder / name_of("state", number))
            self.records.pop(number, None)

    def _drop_all_but_newest(self) -> None:
        for number in numbers(self.names())[:-1]:
            self._forget_generation(number)
        self._prune()


def _make_folder(folder: Path) -> None:
    """Make a folder and its parents, and flush the name of each."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir(exist_ok=True)
        flush_folder(each.parent)


@contextlib.contextmanager
def _disk_errors(what: str, advice: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StateError(f"{what}: {error.strerror or error}; {advice}") from error
