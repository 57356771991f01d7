"""A state folder as its readers see it: generations, newest first, and what is damaged."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from lrtflite.bundle.bundle import INITIAL_FILE
from lrtflite.errors import DamagedState, StateError, problem_of
from lrtflite.files.reading import retry_transient
from lrtflite.files.temporary_names import generation_part, leftovers
from lrtflite.state.form import StateForm
from lrtflite.state.reading import GenerationHeader, State, open_state, read_opened
from lrtflite.state.record import READ_FORMATS, Record

# Eight digits, or up to twelve of which the first is not 0, as `name_of` writes them.
_NUMBER = r"(\d{8}|[1-9]\d{8,11})"
MAX_NUMBER = 10**12 - 1
GENERATION = re.compile(rf"state-{_NUMBER}\.safetensors", re.ASCII)
_NUMBERED = re.compile(rf"(?:state|tensors|rows)-{_NUMBER}\.(?:safetensors|damaged)", re.ASCII)
_PART = re.compile(rf"(?:tensors|rows)-{_NUMBER}\.safetensors", re.ASCII)
# Generations of states before format 5.
EARLIER = re.compile(r"state-\d{8}\.npz", re.ASCII)
# A file of ours that is not part of the state.
CHECKED_FILE = "checked.json"


def name_of(kind: str, number: int) -> str:
    """Return the name of a file of a generation: `state`, `tensors` or `rows`."""
    return f"{kind}-{number:08d}.safetensors"


def numbers(names: Iterable[str]) -> list[int]:
    """Return the numbers of all generations, oldest first."""
    return sorted(int(match[1]) for name in names if (match := GENERATION.fullmatch(name)))


def next_number(names: Iterable[str]) -> int:
    """Return a number that no file has had, not even a leftover or a damaged one."""
    taken = [int(match[1]) for name in names if (match := _NUMBERED.fullmatch(name))]
    number = max(taken, default=-1) + 1
    if number > MAX_NUMBER:  # its name would not be found again
        raise StateError(
            f"Expected a generation below {MAX_NUMBER} in the state folder, got {number - 1}",
            "open a new state path",
        )
    return number


def unfinished(names: Iterable[str]) -> list[str]:
    """Return the names of files that were being written when a process was killed."""
    return leftovers(names, files=(CHECKED_FILE,))


def is_foreign(names: Iterable[str]) -> bool:
    """Return whether a folder holds other files and no state."""
    found = list(names)
    if any(GENERATION.fullmatch(name) or EARLIER.fullmatch(name) for name in found):
        return False
    own = {CHECKED_FILE, *unfinished(found)}
    return not all(name in own or _NUMBERED.fullmatch(name) for name in found)


def unused(names: Iterable[str], records: Iterable[Record]) -> list[str]:
    """Return the names of files with tensors or rows that no generation names."""
    used = frozenset().union(*(record.names for record in records))
    return [name for name in names if _PART.fullmatch(name) and name not in used]


def temporary(folder: Path, number: int) -> Path:
    """Return the path of a generation that is being written."""
    return folder / generation_part(number)


_log = logging.getLogger("lrtflite")
Result = TypeVar("Result")
# Attempts to read a state folder while another learner commits there and removes generations.
READ_ATTEMPTS = 50
# Generations that are tried as a whole before one is read without its lost rows.
WHOLE_FIRST = 2


class StateFolder:
    """The generations in a folder, which another process may be writing.

    `damaged` are paths that were left out.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.damaged: list[Path] = []

    def check_names(self, *, may_be_new: bool) -> None:
        """Raise StateError for a state of an earlier format, or for nothing to read."""
        names = self.names()
        if numbers(names):
            return
        if any(EARLIER.fullmatch(name) for name in names):
            raise earlier_format(self.folder)
        if not may_be_new:
            found = "with no state-*.safetensors in it" if names else "which is empty"
            if not self.folder.exists():
                found = "which does not exist"
            elif INITIAL_FILE in names:
                found = f"which is a bundle: its state is {self.folder / INITIAL_FILE}"
            raise StateError(
                f"Expected a state folder, got {self.folder}, {found}", "check the path"
            )

    @property
    def is_new(self) -> bool:
        """Return whether the folder has no generation yet."""
        return not numbers(self.names())

    def opened(self) -> Iterator[GenerationHeader]:
        """Yield the generations whose own files are whole, newest first; set others aside."""
        for number in reversed(numbers(self.names())):
            path = self.folder / name_of("state", number)
            try:
                opened = open_state(path)
            except DamagedState as error:
                self.set_aside(path, error)
                continue
            yield opened

    def candidates(self) -> Iterator[tuple[GenerationHeader, bool]]:
        """Yield generations to read, newest first, and whether to salvage.

        Two are tried as a whole, then without their lost rows: one lost row is better than many
        lost sessions. Earlier ones, which other writers may keep, come last.
        """
        tried = []
        for opened in self.opened():
            tried.append(opened)
            yield opened, False
            if len(tried) == WHOLE_FIRST:
                yield from ((each, True) for each in tried)
                tried = []
        yield from ((each, True) for each in tried)

    def newest(self, read: Callable[[GenerationHeader, bool], Result]) -> Result:
        """Return what `read` makes of the newest whole generation, given whether to salvage.

        Raise DamagedState if there is none. The writer of the folder may remove generations while
        this reads; then it begins again.
        """
        for attempt in range(1, READ_ATTEMPTS + 1):
            try:
                return self._newest(read)
            except StateError as error:
                is_gone = isinstance(error.__cause__, FileNotFoundError)
                if not is_gone or attempt == READ_ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _newest(self, read: Callable[[GenerationHeader, bool], Result]) -> Result:
        for opened, salvage in self.candidates():
            try:
                return read(opened, salvage)
            except DamagedState as error:
                if not os.path.lexists(opened.path):
                    raise StateError(
                        f"Expected a generation at {opened.path}, got nothing: it was removed "
                        "meanwhile",
                        "try again",
                    ) from FileNotFoundError()
                self.set_aside(opened.path, error)
        raise self.nothing_left()

    def set_aside(self, path: Path, error: DamagedState) -> None:
        """Leave out a damaged generation, and say so; `took` renames it."""
        # As text: a record that keeps the error would keep the open files of its traceback too. The
        # error's advice is for a folder with nothing else.
        why = problem_of(error)
        _log.warning("The state %s is damaged (%s); using the generation before it", path, why)
        if path not in self.damaged:
            self.damaged.append(path)

    def nothing_left(self) -> StateError:
        """Return the error for a folder in which every generation is damaged."""
        return DamagedState(
            f"Expected a whole generation in {self.folder}, got only damaged ones",
            "restore the folder from a copy, or move it away and open a new state path",
        )

    def names(self) -> list[str]:
        try:
            return retry_transient(lambda: os.listdir(self.folder))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StateError(
                f"Cannot read {self.folder}: {error.strerror or error}", "check the path"
            ) from error


def read_state(folder: str | Path, form: StateForm | None = None) -> State:
    """Read the newest whole generation of a state folder, without taking its lock."""
    found = StateFolder(folder)
    found.check_names(may_be_new=False)
    return found.newest(lambda opened, salvage: read_opened(opened, form, salvage=salvage))


def earlier_format(where: Path) -> StateError:
    """Return the error for a state that was written before format 5."""
    return StateError(
        f"Expected a state of format {READ_FORMATS}, got format 4 or earlier in {where}",
        "open a new state path, or install the version that made it",
    )


def number_of(path: Path) -> int:
    """Return the number of a generation from its path."""
    return numbers([path.name])[0]
