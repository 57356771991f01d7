"""Read and write states: one file with everything, or a generation that names further files.

A generation is a tensor file with the values of a state and the facts about its rows. Arrays of the
head, and rows of the memory, are in it or in the files that it names.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.errors import DamagedState, NotRegular, StateError
from lrtflite.files.atomic import replacing
from lrtflite.files.bundle_file import BundleFile
from lrtflite.files.reading import FileSource
from lrtflite.files.tensors import Entry, Outgoing, TensorFile, damaged, write_tensors
from lrtflite.replay.memory import FACTS, Content
from lrtflite.replay.store import CODES, RowFile, join
from lrtflite.state.form import StateForm, check_finite
from lrtflite.state.history import (
    ARRAYS,
    IDS,
    MAX_FOLDED,
    MAX_TAUGHT,
    SESSIONS,
    TAUGHT,
    Folded,
    History,
)
from lrtflite.state.meta import StateMeta
from lrtflite.state.record import READ_FORMATS, STATE_FORMATS, NamedFile, Record

_log = logging.getLogger("lrtflite")
MEMORY = "memory/"
MODELS = ("head/", "features/")
MEMORY_SLOTS, MEMORY_PLACES = "memory/slots", "memory/places"
# Maximum number of bytes of a head's arrays, where no bundle says what to expect.
MAX_TENSORS = 1 << 30


@dataclass(frozen=True)
class State:
    """The state of a learner between two sessions.

    `arrays` are the tensors of both models and of folded sessions, `meta` the values that fit in
    JSON.
    """

    arrays: Mapping[str, NDArray[Any]]
    memory: Content
    meta: StateMeta

    @property
    def history(self) -> History:
        """Return the sessions, made from `meta` and `arrays`, which takes time."""
        return History.from_state(self.meta.history, self.meta.folded, self.arrays)


@dataclass(frozen=True)
class GenerationHeader:
    """A generation whose own file is whole; its other files are not read yet."""

    path: Path
    record: Record
    file: TensorFile


def write_state(path: Path, state: State) -> None:
    """Write a state as one file with everything, or raise OSError."""
    rows = state.memory.rows
    arrays = {name: Outgoing.of(values) for name, values in state.arrays.items()}
    arrays.update(facts_of(state.memory))
    arrays.update(rows.serialise(np.arange(len(rows))))
    record = Record(state.meta, state.memory.counter)
    write_atomic(path, record.to_json(), arrays)


def write_atomic(path: Path, meta: Mapping[str, str], arrays: Mapping[str, Outgoing]) -> None:
    """Write a tensor file in one step, or raise OSError."""
    with replacing(path, make_folder=False) as temporary:
        handle = os.open(temporary, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
        try:
            write_tensors(handle, meta, arrays)
        finally:
            os.close(handle)


def facts_of(memory: Content) -> dict[str, Outgoing]:
    """Return the facts about the rows of a memory, under their names in a state."""
    return {MEMORY + name: Outgoing.of(values) for name, values in memory.facts.items()}


def read_state_file(file: Path | BundleFile, form: StateForm | None = None) -> State:
    """Read a state; with `form`, check everything against the models before it is read.

    Raise DamagedState for damage that is proven, StateError for a read error or another format.
    """
    return read_opened(open_state(file), form)


def open_state(file: Path | BundleFile) -> GenerationHeader:
    """Read the generation's own file alone, with its digest."""
    named = BundleFile.of(file)
    path = named.path
    with reading(path):
        opened = TensorFile(named.source())
        found = opened.meta.get("format", "")
        if found.isdecimal() and len(found) < 10 and int(found) not in STATE_FORMATS:
            opened.check()
            raise StateError(
                f"Expected a state of format {READ_FORMATS}, got format {int(found)} in {path}",
                "open a new state path, or install the version that made it",
            )
        opened.check()
        return GenerationHeader(path, Record.from_json(opened.meta, where=str(path)), opened)


def read_opened(
    opened: GenerationHeader, form: StateForm | None = None, *, salvage: bool = False
) -> State:
    """Read the arrays of a generation, and open the files of its rows.

    With `salvage`, lost rows are left out; without it, they are damage.
    """
    record, path = opened.record, opened.path
    with reading(path):
        if form is not None:
            form.check_meta(record.meta)
        arrays = _read_arrays(opened, form)
        memory = _read_memory(opened, form, salvage=salvage)
        if len(memory) > record.meta.replay_size:
            raise ValueError(f"{len(memory)} rows")
        Folded.from_state(record.meta.folded, arrays)
    return State(arrays, memory, record.meta)


def _read_arrays(opened: GenerationHeader, form: StateForm | None) -> dict[str, NDArray[Any]]:
    files = [_open_named(opened.path, named) for named in opened.record.tensors]
    folded = {} if opened.record.meta.folded is None else ARRAYS
    found: dict[str, tuple[TensorFile, Entry]] = {}
    for file in (*files, opened.file):
        for name, entry in file.entries.items():
            if name.startswith(MODELS) or name in folded:
                found[name] = (file, entry)
    _check_folded({name: entry for name, (_, entry) in found.items() if name in folded})
    if form is not None:
        form.check_entries({name: each for name, (_, each) in found.items() if name not in folded})
    elif sum(entry.end - entry.start for _, entry in found.values()) > MAX_TENSORS:
        raise ValueError(f"more than {MAX_TENSORS:,} bytes of tensors")
    for file, named in zip(files, opened.record.tensors):
        file.check(named.file)
    arrays = {name: file.read(name) for name, (file, _) in sorted(found.items())}
    check_finite(arrays)
    return arrays


def _check_folded(entries: Mapping[str, Entry]) -> None:
    """Raise ValueError for arrays of folded sessions that are malformed or too large to read."""
    most = {IDS: MAX_FOLDED, SESSIONS: MAX_FOLDED, TAUGHT: MAX_TAUGHT}
    for name, entry in entries.items():
        dtype, width = ARRAYS[name]
        if entry.dtype != dtype or entry.shape[1:] != (width,) or entry.shape[0] > most[name]:
            raise ValueError(f"invalid {name}")


def _read_memory(opened: GenerationHeader, form: StateForm | None, *, salvage: bool) -> Content:
    """Return the memory; its rows stay on the disk."""
    own, named = opened.file, opened.record.rows
    slots = own.read(MEMORY_SLOTS)
    facts = {name: np.zeros(slots.shape, kind) for name, kind in FACTS.items()}
    facts.update({name: own.read(MEMORY + name) for name in FACTS if MEMORY + name in own.entries})
    for name, kind in FACTS.items():
        if facts[name].ndim != 1 or facts[name].dtype != np.dtype(kind):
            raise ValueError(f"invalid {name}")
    if len(slots) and not 0 <= slots.min() <= slots.max() < len(opened.record.meta.labels):
        raise ValueError("a slot that the head does not have")
    files = [_open_rows(opened.path, each, salvage=salvage) for each in named]
    if CODES in own.entries:
        files.append(RowFile(own))
    rows, kept = join(files, [each.rows for each in named], form and form.code)
    if form is not None:
        form.check_code(rows.shape, rows.dtype)
    places = np.arange(len(rows)) if MEMORY_PLACES not in own.entries else own.read(MEMORY_PLACES)
    if places.dtype != np.int64 or any(values.shape != places.shape for values in facts.values()):
        raise ValueError("facts and rows differ in number")
    if len(places) and not 0 <= places.min() <= places.max() < len(rows):
        raise ValueError("a row that no file has")
    content = Content(rows.select(places), facts, opened.record.counter)
    if not kept.all():
        sound = np.flatnonzero(kept[places])
        _log.warning("%d latents of %s are lost", len(places) - len(sound), opened.path)
        content = content.select(sound)
    for part in content.rows.parts(np.arange(len(content))):
        check_finite({CODES: part})
    return content


def _open_rows(path: Path, named: NamedFile, *, salvage: bool) -> RowFile | dict[int, NDArray[Any]]:
    """Return a file of rows; to `salvage`, those of its rows that are sound if it is damaged."""
    rows: dict[int, NDArray[Any]] | None = None
    try:
        file = _open_named(path, named)
        row_file = RowFile(file)
        if row_file.count != named.rows:
            raise damaged(row_file.name, f"{row_file.count} rows")
        try:
            file.check(named.file)
        except DamagedState:
            rows = row_file.sound_rows() if salvage else None
            raise
    except DamagedState:
        if salvage:
            return rows or {}
        raise
    return row_file


def _open_named(path: Path, named: NamedFile) -> TensorFile:
    """Open a file that a generation names; a missing or invalid one is damage."""
    try:
        return TensorFile(FileSource(path.with_name(named.name)))
    except (FileNotFoundError, NotRegular) as error:
        raise damaged(str(path.with_name(named.name)), "it is missing") from error


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn errors into DamagedState where damage is proven, and else into StateError."""
    try:
        yield
    except DamagedState:
        raise
    except FileNotFoundError as error:
        raise StateError(
            f"Expected a state file, got nothing at {path}", "check the path"
        ) from error
    except (ValueError, KeyError, TypeError, NotRegular) as error:
        raise damaged(str(path), str(error)) from error
    except (OSError, MemoryError) as error:
        why = getattr(error, "strerror", None) or error or "out of memory"
        raise StateError(f"Cannot read {path}: {why}", "nothing was changed, try again") from error
