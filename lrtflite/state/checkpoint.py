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

from lrtflite.errors import StateError, StateInPlace
from lrtflite.files.atomic import flush_folder
from lrtflite.files.deferred_signals import deferred_signals
from lrtflite.replay.memory import Content
from lrtflite.state.folder import (
    StateFolder,
    is_foreign,
    name_of,
    next_number,
    numbers,
    temporary,
    unfinished,
    unused,
)
from lrtflite.state.form import StateForm
from lrtflite.state.lock import FolderLock
from lrtflite.state.meta import NO_STATE
from lrtflite.state.reading import GenerationHeader, State, open_state, read_opened, reading
from lrtflite.state.record import Record
from lrtflite.state.writing import Generation, generation_of, stored, write_generation

FULL = (errno.ENOSPC, errno.EDQUOT)
_NONE = Generation(-1, Record(NO_STATE))


class Checkpoint(StateFolder):
    """A state folder, locked by one learner at a time; `read_only` neither locks nor writes it.

    A folder opened read-only may belong to a learner that keeps committing. Its newest generation
    can disappear before it is read, once a later one exists.
    """

    def __init__(self, folder: str | Path, *, read_only: bool = False) -> None:
        super().__init__(folder)
        self._read_only = read_only
        self._lock: FolderLock | None = None
        # Folders that were made for the state, the outermost first.
        self._made: list[Path] = []
        # The newest generation, and the one before it, unknown until a commit needs it.
        self._current: Generation | None = None
        self._before: Generation | None = None
        # The memory of the newest generation that this process wrote, with its rows on the disk.
        self.content: Content | None = None
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
            _make_folder(self.folder, self._made)
            names = self.names()
            if is_foreign(names):
                raise StateError(
                    f"Expected a state folder, or a new or empty one, got {self.folder} with "
                    f"{min(names)} in it",
                    "choose another path",
                )
            self._lock = FolderLock(self.folder)
            if not numbers(names):
                # Whoever made the folder may not have flushed its name.
                with contextlib.suppress(PermissionError):
                    flush_folder(Path(os.path.realpath(self.folder)).parent)
        for name in unfinished(names):
            with contextlib.suppress(OSError):
                os.unlink(self.folder / name)

    def adopt(self, opened: GenerationHeader, state: State) -> None:
        """Make this generation the base of the next commit.

        Damaged generations are renamed only now, so that a folder without a whole one is unchanged.
        """
        with reading(opened.path):
            self._current, self._before = generation_of(opened, state), None
        self.content = None
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

        def take(opened: GenerationHeader, salvage: bool) -> State:
            state = read_opened(opened, form, salvage=salvage)
            self.adopt(opened, state)
            return state

        return self.newest(take)

    def commit(self, state: State, *, frees: bool = False) -> Content:
        """Write `state` as the newest generation; on any failure the current one stays.

        Return the memory with its rows on the disk. Raise StateInPlace if the new generation is
        there and cannot be removed, though the disk failed; `content` has the memory then. If the
        disk is full and the change `frees` space, the generations for undo are deleted to make
        room.
        """
        undo = None if self._current is None else self._current.number
        with deferred_signals():
            try:
                return self._commit(state, undo=undo)
            except StateInPlace:
                raise
            except StateError as error:
                full = isinstance(error.__cause__, OSError) and error.__cause__.errno in FULL
                if not (frees and full):
                    raise
            self._drop_all_but_newest()
            return self._commit(state, undo=None, compact=False)

    def previous_number(self) -> int | None:
        """Return the number of the generation that `undo` returns to, if it is kept."""
        wanted = None if self._current is None else self._current.record.undo
        return wanted if wanted in numbers(self.names()) else None

    def previous(self) -> GenerationHeader:
        """Return the generation that `undo` returns to."""
        wanted = self.previous_number()
        if wanted is None:
            raise StateError("Nothing to undo: no earlier state is kept", "make a change first")
        return open_state(self.folder / name_of("state", wanted))

    def undo(self, previous: GenerationHeader, state: State) -> Content:
        """Write the previous generation again, as the newest one, and delete the one undone.

        The previous generation stays too, to fall back to. Errors are those of `commit`.
        """
        undone, before = self._current, self._before
        assert undone is not None  # `previous` found one
        with deferred_signals():
            self.adopt(previous, state)
            try:
                return self._commit(state, undo=None, undone=undone)
            except StateInPlace:
                raise
            except BaseException:
                self._current, self._before = undone, before
                raise

    def close(self) -> None:
        """Release the folder; remove it if it was made here and has remained empty."""
        if self._current is None:
            for folder in reversed(self._made):
                with contextlib.suppress(OSError):
                    folder.rmdir()
        if self._lock is not None:
            self._lock.release()

    def _commit(
        self,
        state: State,
        *,
        undo: int | None,
        compact: bool = True,
        undone: Generation | None = None,
    ) -> Content:
        assert self._lock is not None  # a reader does not commit
        self._lock.check()
        number, files = next_number(self.names()), list[Path]()
        before, shared = self._current or _NONE, undone or self._older()
        path, is_renamed = self.folder / name_of("state", number), False
        try:
            written, content = write_generation(
                self.folder, before, number, state, undo, files, shared=shared, compact=compact
            )
            if before is _NONE:
                # There is no generation to fall back to, if power fails before the names of these
                # files are on the disk.
                flush_folder(self.folder)
            os.replace(temporary(self.folder, number), path)
            is_renamed = True
            flush_folder(self.folder)
        except BaseException as error:
            known = self._withdraw(path, files, is_renamed=is_renamed, is_first=before is _NONE)
            if known is None:
                self._current, self._before, self.content = written, before, content
            if not isinstance(error, OSError):
                raise
            raise (StateError if known else StateInPlace)(
                f"Cannot {'save to' if undone is None else 'undo in'} {self.folder}, "
                f"{known or 'the new state is in place, but a power cut may still undo it'}: "
                f"{error.strerror or error}; check the disk, then try again"
            ) from error
        self._current, self._before, self.content = written, before, content
        if before is not _NONE:  # a new folder has nothing to delete
            self._prune()
        return content

    def _older(self) -> Generation:
        """Return the generation before the current one, or none."""
        if self._before is None:
            self._before = self._read_older()
        return self._before

    def _read_older(self) -> Generation:
        if self._current is None:
            return _NONE
        needed = {named.name for named in self._current.record.tensors}
        for number in reversed(numbers(self.names())):
            if number < self._current.number:
                path = self.folder / name_of("state", number)
                # Without it, the next commit writes tensors that it could have shared.
                with contextlib.suppress(StateError), reading(path):
                    return stored(open_state(path), without=needed)
        return _NONE

    def _withdraw(
        self, path: Path, files: list[Path], *, is_renamed: bool, is_first: bool
    ) -> str | None:
        """Remove what a failed commit wrote; return what is known about the state before.

        Return None if the new generation is still in place.
        """
        was_there = False
        try:
            os.unlink(path)
            was_there = True
        except FileNotFoundError:
            pass
        except OSError:
            if is_renamed or os.path.lexists(path):
                return None
        for file in files:
            with contextlib.suppress(OSError):
                os.unlink(file)
        if was_there:
            # Its name may be on the disk already, although the flush failed.
            try:
                flush_folder(self.folder)
            except OSError:
                now = "no state was made" if is_first else "the state before is in use"
                return f"{now}, but a power cut may bring the new one back"
        return "no state was made" if is_first else "the state before is intact"

    def _prune(self) -> None:
        """Delete all but two generations, and their files; the next commit tries again."""
        kept = (self._current or _NONE, self._before or _NONE)
        stay = {each.number: each.record for each in kept if each is not _NONE}
        if not stay:
            return
        with contextlib.suppress(OSError, StateError):
            names = self.names()
            for number in numbers(names):
                if number not in stay:
                    with contextlib.suppress(OSError):
                        os.unlink(self.folder / name_of("state", number))
            for name in unused(names, stay.values()):
                os.unlink(self.folder / name)

    def _drop_all_but_newest(self) -> None:
        self._before = _NONE
        self._prune()


def _make_folder(folder: Path, made: list[Path]) -> None:
    """Make a folder and its parents, flush the name of each, and add them to `made`."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        with contextlib.suppress(FileExistsError):
            each.mkdir()
            made.append(each)
        flush_folder(each.parent)


@contextlib.contextmanager
def _disk_errors(what: str, advice: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StateError(f"{what}: {error.strerror or error}", advice) from error
