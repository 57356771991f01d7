"""Write the files of a generation: new rows, changed tensors, then the generation that names them.

Every function raises OSError and leaves it to the caller to remove what was written.

INVARIANT: a generation shares no tensors with the one before it, so one damaged file never spoils
both. Unchanged tensors are in two files, and the generations name one and the other by turns.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.files.atomic import flush_file
from lrtflite.files.digest import File
from lrtflite.files.reading import FileSource
from lrtflite.files.tensors import Outgoing, TensorFile, write_tensors
from lrtflite.replay.memory import Content
from lrtflite.replay.store import CODES, RowFile
from lrtflite.state.folder import name_of, number_of, temporary
from lrtflite.state.history import ARRAYS
from lrtflite.state.reading import MEMORY_PLACES, GenerationHeader, State, facts_of
from lrtflite.state.record import NamedFile, Record

# Maximum number of files that the tensors of a state are spread over.
MAX_TENSOR_FILES = 16
# Maximum number of bytes of changed tensors that go into the generation's own file. A flush of one
# more file takes longer than writing them again in the next commit.
MAX_INLINE = 1 << 20
# The same for folded sessions, which change once in many commits.
MAX_INLINE_HISTORY = 1 << 13


@dataclass(frozen=True)
class Generation:
    """A generation in the folder: its number and record, and the digest and file of each array.

    `folded` are the arrays of folded sessions, whose digests are not computed again.
    """

    number: int
    record: Record
    tensors: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    folded: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def write_generation(
    folder: Path,
    before: Generation,
    number: int,
    state: State,
    undo: int | None,
    files: list[Path],
    *,
    shared: Generation,
    compact: bool,
) -> tuple[Generation, Content]:
    """Write and flush the files of a generation, and note them in `files`; raise OSError.

    Its own file keeps a temporary name, until the caller renames it. `before` is the generation to
    fall back to; unchanged tensors may stay in files of `shared` that `before` does not need.
    """
    digests = {
        name: before.tensors[name][0] if values is before.folded.get(name) else digest_of(values)
        for name, values in state.arrays.items()
    }
    needed = {named.name for named in before.record.tensors}
    place = _unchanged(shared.tensors, digests, state.arrays, without=needed)
    tensors = [named for named in shared.record.tensors if named.name in place.values()]
    changed = {name: Outgoing.of(state.arrays[name]) for name in digests if name not in place}
    inline = {name: changed.pop(name) for name in _small(changed, state.arrays)}
    if changed:
        tensors.append(_add(folder, name_of("tensors", number), changed, files))
    place.update(dict.fromkeys(changed, name_of("tensors", number)))
    rows, row_files = state.memory.rows, before.record.rows
    loose = rows.unsaved([str(folder / each.name) for each in row_files], compact=compact)
    new_rows = None
    if len(loose):
        named = _add(folder, name_of("rows", number), rows.serialise(loose), files, rows=len(loose))
        row_files = (*row_files, named)
        new_rows = RowFile(TensorFile(FileSource(folder / named.name)))
    content = Content(rows.after_save(loose, new_rows), state.memory.facts, state.memory.counter)
    by_name = {str(folder / each.name): each for each in row_files}
    record = Record(
        state.meta,
        content.counter,
        undo,
        tuple(tensors),
        tuple(by_name[file.name] for file in content.rows.files),
    )
    _put(folder, number, record, content, inline, files)
    tensors_of = {name: (sha, place.get(name, "")) for name, sha in digests.items()}
    folded = {name: values for name, values in state.arrays.items() if name in ARRAYS}
    return Generation(number, record, tensors_of, folded), content


def generation_of(opened: GenerationHeader, state: State) -> Generation:
    """Return a generation of the folder, from the state that was read from it; raise OSError."""
    place = _places(opened, [TensorFile(FileSource(path)) for path in _paths(opened)])
    tensors = {
        name: (digest_of(values), place.get(name, "")) for name, values in state.arrays.items()
    }
    return Generation(number_of(opened.path), opened.record, tensors)


def stored(opened: GenerationHeader, *, without: Collection[str]) -> Generation:
    """Return a generation of the folder with what is in its files, except in those `without`.

    Raise DamagedState or OSError for a file that cannot be read.
    """
    files = [TensorFile(FileSource(path)) for path in _paths(opened)]
    place, tensors = _places(opened, files), dict[str, tuple[str, str]]()
    for file, named in zip(files, opened.record.tensors):
        if named.name not in without:
            file.check(named.file)
            for name in file.entries:
                if place[name] == named.name:
                    tensors[name] = (digest_of(file.read(name)), named.name)
    return Generation(number_of(opened.path), opened.record, tensors)


def _paths(opened: GenerationHeader) -> list[Path]:
    return [opened.path.with_name(named.name) for named in opened.record.tensors]


def _places(opened: GenerationHeader, files: Sequence[TensorFile]) -> dict[str, str]:
    """Return the name of the file of each array, or "" for the generation's own file."""
    place: dict[str, str] = {}
    for named, file in zip(opened.record.tensors, files):
        place.update(dict.fromkeys(file.entries, named.name))
    # An array in the generation itself replaces an earlier one of the same name.
    return {**place, **dict.fromkeys(opened.file.entries, "")}


def _add(
    folder: Path, name: str, arrays: Mapping[str, Outgoing], files: list[Path], *, rows: int = 0
) -> NamedFile:
    """Write a new file; nobody names it yet, so it needs no temporary name."""
    files.append(folder / name)
    return NamedFile(name, _write_new(folder / name, {}, arrays), rows)


def _put(
    folder: Path,
    number: int,
    record: Record,
    content: Content,
    inline: Mapping[str, Outgoing],
    files: list[Path],
) -> None:
    """Write the generation itself under a temporary name, and flush everything.

    All files are flushed one after the other, because a disk has little left to do after the first.
    """
    part = temporary(folder, number)
    files.append(part)
    arrays = {**inline, **facts_of(content), MEMORY_PLACES: Outgoing.of(content.rows.places)}
    # No rows, but their shape and dtype, for readers that have no bundle.
    arrays[CODES] = content.rows.serialise(np.empty(0, np.int64))[CODES]
    _write_new(part, record.to_json(), arrays)
    for each in files:
        flush_file(each)


def _groups(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Divide names of arrays into tensors of the models, and folded sessions."""
    return [x for x in names if x not in ARRAYS], [x for x in names if x in ARRAYS]


def _small(names: Iterable[str], arrays: Mapping[str, NDArray[Any]]) -> list[str]:
    """Return the arrays that go into the generation's own file."""
    return [
        name
        for group, most in zip(_groups(names), (MAX_INLINE, MAX_INLINE_HISTORY))
        if sum(arrays[each].nbytes for each in group) <= most
        for name in group
    ]


def _unchanged(
    before: Mapping[str, tuple[str, str]],
    digests: Mapping[str, str],
    arrays: Mapping[str, NDArray[Any]],
    *,
    without: Collection[str],
) -> dict[str, str]:
    """Return the arrays that need not be written again, with their files, none of them `without`.

    They must outweigh the others of their group. A few bytes are not worth a file that several
    generations need.
    """
    place: dict[str, str] = {}
    for names in _groups(digests):
        same = {
            name: before[name][1]
            for name in names
            if name in before and before[name][0] == digests[name] and before[name][1]
            if before[name][1] not in without
        }
        saved = sum(arrays[name].nbytes for name in same)
        if saved > sum(arrays[name].nbytes for name in names) - saved:
            place.update(same)
    return place if len(set(place.values())) < MAX_TENSOR_FILES else {}


def digest_of(values: NDArray[Any]) -> str:
    """Return a digest of an array and its form."""
    sha = hashlib.sha256(f"{values.dtype.str}{values.shape}".encode())
    sha.update(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)
    return sha.hexdigest()


def _write_new(path: Path, meta: Mapping[str, str], arrays: Mapping[str, Outgoing]) -> File:
    """Write a new tensor file; the caller removes it if this fails."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(path, flags, 0o666)
    try:
        return write_tensors(handle, meta, arrays)
    finally:
        os.close(handle)
