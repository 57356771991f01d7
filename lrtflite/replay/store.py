"""The rows of a replay memory: in files once they are committed, in RAM until then.

Nothing here changes in place. A change of the memory makes a new `Rows`, so the old one stays valid
until the new one is committed, and needs no copy.
"""

from __future__ import annotations

import math
import zlib
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.errors import StateError, TooShort
from lrtflite.files.tensors import Outgoing, TensorFile, damaged
from lrtflite.replay.policies import Indices

CODES, CHECKS = "memory/codes", "memory/checks"
# Maximum number of files that the rows of a memory are spread over.
MAX_FILES = 32
# Maximum number of bytes of a memory whose rows stay in RAM once they were read.
MAX_IN_RAM = 2 << 20
# Bytes of rows that are copied from file to file at a time.
_AT_ONCE = 1 << 20


class RowFile:
    """Rows in a tensor file that does not change any more."""

    def __init__(self, file: TensorFile) -> None:
        self.name, self._source = file.source.name, file.source
        if CODES not in file.entries or not file.entries[CODES].shape:
            raise damaged(self.name, "it has no rows")
        entry = file.entries[CODES]
        self.count, self.shape, self.dtype = entry.shape[0], entry.shape[1:], entry.dtype
        self._file = file
        self._start, self._size = entry.start, math.prod(self.shape) * self.dtype.itemsize

    def all(self) -> NDArray[Any]:
        """Read all rows, (n, ...)."""
        out = np.empty((self.count, *self.shape), self.dtype)
        self.read_into(0, out.reshape(-1).view(np.uint8).data)
        return out

    def read_into(self, row: int, out: memoryview) -> None:
        """Read rows from the disk, or from its cache; raise StateError if they cannot be read.

        Begins with `row` and reads as many rows as `out` holds.
        """
        try:
            self._source.read_into(out, self._start + row * self._size)
        except TooShort as error:
            raise damaged(self.name, "its end is missing") from error
        except (OSError, MemoryError) as error:
            why = getattr(error, "strerror", None) or "out of memory"
            raise StateError(
                f"Cannot read {self.name}: {why}", "nothing was changed, try again"
            ) from error

    def sound_rows(self) -> dict[int, NDArray[Any]]:
        """Return the rows of a damaged file that match their own checks, in RAM."""
        if CHECKS not in self._file.entries:
            return {}
        sums, found = self._file.read(CHECKS), {}
        for row in range(min(self.count, sums.size)):
            values = np.empty(self.shape, self.dtype)
            self.read_into(row, values.reshape(-1).view(np.uint8).data)
            if zlib.crc32(np.ascontiguousarray(values).data) == sums.reshape(-1)[row]:
                found[row] = values
        return found


@dataclass(frozen=True)
class Rows:
    """The rows of a memory, each with its place in `files` or in `fresh`.

    Place p >= 0 is row p of all files taken together, place p < 0 is fresh[-1 - p].
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    places: Indices = field(default_factory=lambda: np.empty(0, np.int64))
    files: tuple[RowFile, ...] = ()
    fresh: tuple[NDArray[Any], ...] = ()

    def __len__(self) -> int:
        return len(self.places)

    @property
    def nbytes(self) -> int:
        return len(self) * math.prod(self.shape) * self.dtype.itemsize

    @property
    def starts(self) -> list[int]:
        """Return the place of the first row of each file, and the end of the last."""
        return list(accumulate((file.count for file in self.files), initial=0))

    def read(self, rows: Indices, out: NDArray[Any]) -> None:
        """Write these rows into `out` (k, ...), an array without gaps of this shape and dtype."""
        if not self.files:
            for number, place in enumerate(self.places[rows].tolist()):
                out[number] = self.fresh[-1 - place]
            return
        if self.nbytes <= MAX_IN_RAM:
            np.take(self._in_ram, rows, axis=0, out=out, mode="clip")
            return
        self._read(rows, out)

    @cached_property
    def _in_ram(self) -> NDArray[Any]:
        """Read the rows of a small memory once: a call for each row takes longer than a step."""
        out = np.empty((len(self), *self.shape), self.dtype)
        if self.starts[-1] > 4 * len(self):  # mostly dead rows
            self._read(np.arange(len(self)), out)
            return out
        # One file at a time, so that dead rows take little RAM.
        for file, start in zip(self.files, self.starts):
            rows = np.flatnonzero((self.places >= start) & (self.places < start + file.count))
            if len(rows):
                out[rows] = file.all()[self.places[rows] - start]
        for row in np.flatnonzero(self.places < 0).tolist():
            out[row] = self.fresh[-1 - int(self.places[row])]
        return out

    def _read(self, rows: Indices, out: NDArray[Any]) -> None:
        starts, size = self.starts, math.prod(self.shape) * self.dtype.itemsize
        raw = out.reshape(-1).view(np.uint8).data
        for number, place in enumerate(self.places[rows].tolist()):
            if place < 0:
                out[number] = self.fresh[-1 - place]
            else:
                file = bisect_right(starts, place) - 1
                room = raw[number * size : (number + 1) * size]
                self.files[file].read_into(place - starts[file], room)

    def all(self) -> NDArray[Any]:
        """Return every row, (n, ...), in RAM."""
        out = np.empty((len(self), *self.shape), self.dtype)
        self.read(np.arange(len(self)), out)
        return out

    def select(self, rows: Indices) -> Rows:
        """Return these rows alone, in this order."""
        return self._with(self.places[rows], self.fresh)

    def with_rows(self, codes: Sequence[NDArray[Any]], rows: Indices) -> Rows:
        """Return the rows with `codes[k]` in row `rows[k]`; rows past the end are appended."""
        places = np.empty(max(len(self), int(rows.max(initial=-1)) + 1), np.int64)
        places[: len(self)] = self.places
        places[rows] = -1 - np.arange(len(self.fresh), len(self.fresh) + len(rows))
        return self._with(places, (*self.fresh, *codes))

    def detached(self) -> Rows:
        """Return the rows without references to the arrays of a caller."""
        fresh = tuple(row if row.base is None else row.copy() for row in self.fresh)
        return Rows(self.shape, self.dtype, self.places, self.files, fresh)

    def unsaved(self, names: Collection[str], *, compact: bool = True) -> Indices:
        """Return the rows to write, for a folder whose files have these names.

        They are the rows that are in no such file. To `compact`, they are all rows once dead rows
        outweigh the live ones, and those of the smaller files once there are too many.
        """
        home, owner = self._is_in(names), self._file_of()
        if not compact:
            return np.flatnonzero(~home)
        used, alive = np.unique(owner[home], return_counts=True)
        dead = sum(self.files[file].count for file in used.tolist()) - int(alive.sum())
        if dead > len(self):
            return np.arange(len(self))
        if len(used) >= MAX_FILES:  # join the smaller half
            small = used[np.argsort(alive, kind="stable")[: MAX_FILES // 2]]
            home &= ~np.isin(owner, small)
        return np.flatnonzero(~home)

    def after_save(self, loose: Indices, written: RowFile | None) -> Rows:
        """Return the rows after the `loose` ones were written to a file, in their order."""
        is_loose = np.zeros(len(self), bool)
        is_loose[loose] = True
        owner, starts = self._file_of(), np.array(self.starts)
        used = sorted(set(owner[~is_loose].tolist()))
        files = [self.files[number] for number in used]
        begins = np.zeros(len(self.files) + 1, np.int64)
        begins[used] = list(accumulate((file.count for file in files), initial=0))[:-1]
        places = self.places - starts[owner] + begins[owner]
        places[loose] = sum(file.count for file in files) + np.arange(len(loose))
        return Rows(self.shape, self.dtype, places, (*files, *([written] if written else ())))

    def serialise(self, rows: Indices) -> dict[str, Outgoing]:
        """Return these rows as an array to write, of which only a part is in RAM at a time.

        A second array has the CRC-32 of each row, so that damage to a file spoils few rows.
        """
        checks: list[int] = []

        def codes() -> Iterator[NDArray[Any]]:
            for part in self.parts(rows):
                checks.extend(zlib.crc32(np.ascontiguousarray(row).data) for row in part)
                yield part

        def found() -> Iterator[NDArray[Any]]:
            yield np.array(checks, np.uint32)  # once all codes are written

        return {
            CODES: Outgoing(self.dtype, (len(rows), *self.shape), codes()),
            CHECKS: Outgoing(np.dtype(np.uint32), (len(rows),), found()),
        }

    def parts(self, rows: Indices) -> Iterator[NDArray[Any]]:
        """Yield these rows, a few at a time, in an array that is used again."""
        few = max(1, _AT_ONCE // max(1, math.prod(self.shape) * self.dtype.itemsize))
        room = np.empty((min(few, len(rows)), *self.shape), self.dtype)
        for start in range(0, len(rows), few):
            part = rows[start : start + few]
            self.read(part, room[: len(part)])
            yield room[: len(part)]

    def _with(self, places: Indices, fresh: tuple[NDArray[Any], ...]) -> Rows:
        """Return rows at these places, without the fresh ones that nobody uses."""
        loose = places < 0
        used = -1 - places[loose]
        places = places.copy()
        places[loose] = -1 - np.arange(len(used))
        kept = tuple(fresh[number] for number in used.tolist())
        return Rows(self.shape, self.dtype, places, self.files, kept)

    def _file_of(self) -> Indices:
        """Return the number of the file of each row; that of fresh rows has no meaning."""
        found = np.searchsorted(np.array(self.starts), self.places, side="right") - 1
        return np.asarray(np.maximum(found, 0), np.int64)

    def _is_in(self, names: Collection[str]) -> NDArray[np.bool_]:
        if not self.files:
            return np.zeros(len(self), bool)
        known = np.array([file.name in names for file in self.files])
        return np.asarray(known[self._file_of()] & (self.places >= 0))


def join(
    files: Sequence[RowFile | dict[int, NDArray[Any]]],
    counts: Sequence[int],
    form: Any,
) -> tuple[Rows, NDArray[np.bool_]]:
    """Return the rows of several files, and which of them (n,) are there.

    A damaged file is given as the rows that are left of it, by number, in place of the file; it had
    as many rows as `counts` says. `form` has the shape and dtype of a row, if they are known.
    """
    whole = [file for file in files if isinstance(file, RowFile)]
    forms = {(file.shape, file.dtype) for file in whole}
    if form is not None:
        forms.add((form.shape, form.dtype))
    if len(forms) != 1:
        raise ValueError("rows of no shape, or of several")
    [(shape, dtype)] = forms
    places, kept, fresh, start = [], [], list[NDArray[Any]](), 0
    for number, file in enumerate(files):
        if isinstance(file, RowFile):
            places.append(np.arange(start, start + file.count))
            kept.append(np.ones(file.count, bool))
            start += file.count
            continue
        # A row that is lost has place 0 until it is left out.
        place, there = np.zeros(counts[number], np.int64), np.zeros(counts[number], bool)
        for row, values in file.items():
            if (values.shape, values.dtype) != (shape, dtype):
                continue
            fresh.append(values)
            place[row], there[row] = -len(fresh), True
        places.append(place)
        kept.append(there)
    empty: list[Any] = [np.empty(0, np.int64)]
    used = tuple(file for file in whole if file.count)
    rows = Rows(shape, dtype, np.concatenate(empty + places), used, tuple(fresh))
    return rows, np.concatenate([np.empty(0, bool), *kept])
