"""Tensor files: named arrays behind a JSON header, in the layout of safetensors, with a digest.

    bytes 0 to 7     length of the header, n, as a little-endian number
    the next n       the header: a JSON object of names, dtypes, shapes and places, then spaces
    the rest         the arrays, one after the other; the last 32 bytes are the array `sha256`

`sha256` is the SHA-256 of all bytes before it. docs/state.md describes every byte.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.errors import DamagedState, StateError, TooShort
from lrtflite.files.digest import File
from lrtflite.files.reading import Source, each_chunk
from lrtflite.files.strict_json import strict_json

DIGEST, DIGEST_BYTES = "sha256", 32
METADATA = "__metadata__"
# Maximum number of bytes in a header.
MAX_HEADER = 8 << 20
# Maximum number of axes of an array; numpy has the same limit.
MAX_AXES = 32
DTYPES = {
    "BOOL": np.dtype(np.bool_),
    "U8": np.dtype(np.uint8),
    "I8": np.dtype(np.int8),
    "U16": np.dtype("<u2"),
    "I16": np.dtype("<i2"),
    "F16": np.dtype("<f2"),
    "U32": np.dtype("<u4"),
    "I32": np.dtype("<i4"),
    "F32": np.dtype("<f4"),
    "U64": np.dtype("<u8"),
    "I64": np.dtype("<i8"),
    "F64": np.dtype("<f8"),
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}


@dataclass(frozen=True)
class Outgoing:
    """An array to write: its form, and its bytes in parts, so that it need not be in RAM."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    parts: Iterable[NDArray[Any]]

    @classmethod
    def of(cls, values: NDArray[Any]) -> Outgoing:
        return cls(values.dtype, values.shape, (values,))


@dataclass(frozen=True)
class Entry:
    """An array in a file: its form, and where its bytes are."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    end: int


def write_tensors(handle: int, meta: Mapping[str, str], arrays: Mapping[str, Outgoing]) -> File:
    """Write a tensor file to an open handle; return its size and digest, or raise OSError."""
    header = _header(meta, arrays)
    sha, size = hashlib.sha256(), 0
    for part in (len(header).to_bytes(8, "little"), header):
        sha.update(part)
        size += _write(handle, memoryview(part))
    for array in arrays.values():
        for values in array.parts:
            raw = np.ascontiguousarray(values).reshape(-1).view(np.uint8).data
            sha.update(raw)
            size += _write(handle, raw)
    size += _write(handle, memoryview(sha.digest()))
    return File(sha.hexdigest(), size)


class TensorFile:
    """A tensor file whose header is sound; `check` compares the rest with its digest."""

    def __init__(self, source: Source) -> None:
        """Read the header, or raise DamagedState or OSError; StateError if it is too long."""
        self.source = source
        try:
            self.meta, self.entries = _read_header(source)
        except TooShort as error:
            raise damaged(source.name, "its end is missing") from error
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise damaged(source.name, str(error)) from error

    def check(self, expected: File | None = None) -> None:
        """Raise DamagedState unless all bytes match the digest, and `expected` if given."""
        if expected is not None and expected.bytes != self.source.size:
            raise damaged(self.source.name, f"{self.source.size} bytes, not {expected.bytes}")
        try:
            found = self._digest()
            # Read again to tell a passing hardware fault from a file that has changed.
            if found != self.sha256 or (expected and found != expected.sha256):
                found = self._digest()
        except TooShort as error:
            raise damaged(self.source.name, "its end is missing") from error
        if found != self.sha256:
            raise damaged(self.source.name, "its bytes do not match its digest")
        if expected is not None and found != expected.sha256:
            raise damaged(self.source.name, "it is another file than the state names")

    @property
    def sha256(self) -> str:
        """Return the digest that the file ends with."""
        return self.read(DIGEST).tobytes().hex()

    def read(self, name: str) -> NDArray[Any]:
        """Return an array; raise DamagedState if the file has none of this name."""
        entry = self._entry(name)
        values = np.empty(entry.shape, entry.dtype)
        self._fill(values, entry.start)
        return values

    def _entry(self, name: str) -> Entry:
        if name not in self.entries:
            raise damaged(self.source.name, f"it lacks {name}")
        return self.entries[name]

    def _fill(self, values: NDArray[Any], start: int) -> None:
        try:
            self.source.read_into(values.reshape(-1).view(np.uint8).data, start)
        except TooShort as error:
            raise damaged(self.source.name, "its end is missing") from error

    def _digest(self) -> str:
        return _digest(self.source)


def _digest(source: Source) -> str:
    """Return the SHA-256 of all bytes before the digest."""
    sha = hashlib.sha256()
    for chunk in each_chunk(source, source.size - DIGEST_BYTES):
        sha.update(chunk)
    return sha.hexdigest()


def _is_whole(source: Source) -> bool:
    """Return whether a file ends with its digest, whatever its header says."""
    end = _bytes(source, source.size - DIGEST_BYTES, DIGEST_BYTES)
    return _digest(source) == end.hex()


def damaged(name: str, why: str) -> DamagedState:
    return DamagedState(
        f"Expected a complete state file, got a damaged one: {name} ({why[:80]})",
        "restore it from a copy, or open a new state path",
    )


def _header(meta: Mapping[str, str], arrays: Mapping[str, Outgoing]) -> bytes:
    found: dict[str, Any] = {METADATA: dict(meta)}
    place = 0
    forms = {name: (array.dtype, array.shape) for name, array in arrays.items()}
    forms[DIGEST] = (DTYPES["U8"], (DIGEST_BYTES,))
    for name, (dtype, shape) in forms.items():
        end = place + math.prod(shape) * dtype.itemsize
        found[name] = {
            "dtype": _NAMES[dtype.newbyteorder("<")],
            "shape": list(shape),
            "data_offsets": [place, end],
        }
        place = end
    text = json.dumps(found, separators=(",", ":"), allow_nan=False).encode()
    if len(text) > MAX_HEADER:
        raise OSError(f"its JSON would have {len(text):,} bytes, more than {MAX_HEADER:,}")
    return text + b" " * (-len(text) % 8)


def _read_header(source: Source) -> tuple[dict[str, str], dict[str, Entry]]:
    """Return metadata and entries, or raise ValueError, TypeError, KeyError or RecursionError."""
    length = int.from_bytes(_bytes(source, 0, 8), "little")
    if MAX_HEADER < length < source.size and _is_whole(source):
        raise StateError(
            f"Expected at most {MAX_HEADER:,} bytes of JSON in {source.name}, got {length:,}",
            "fold the earlier sessions of its history into arrays, as docs/state.md describes",
        )
    if not 2 <= length <= min(MAX_HEADER, source.size - 8 - DIGEST_BYTES):
        raise ValueError(f"a header of {length} bytes")
    found = strict_json(_bytes(source, 8, length).decode())
    if not isinstance(found, dict):
        raise ValueError("no header")
    meta = found.pop(METADATA, {})
    if not isinstance(meta, dict) or not all(isinstance(each, str) for each in meta.values()):
        raise ValueError("invalid metadata")
    entries, place = {}, 8 + length
    for name, entry in found.items():
        entries[name] = _entry(name, entry, 8 + length)
        if entries[name].start != place:
            raise ValueError(f"{name[:30]!r} is out of place")
        place = entries[name].end
    last = next(reversed(entries.values()), None)
    if place != source.size or last != entries.get(DIGEST):
        raise ValueError("it does not end with its digest")
    if last is None or (last.dtype, last.shape) != (DTYPES["U8"], (DIGEST_BYTES,)):
        raise ValueError("an invalid digest")
    return meta, entries


def _entry(name: str, found: Any, base: int) -> Entry:
    if set(found) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"invalid fields of {name[:30]!r}")
    dtype, shape, (begin, end) = DTYPES[found["dtype"]], found["shape"], found["data_offsets"]
    if not isinstance(shape, list) or len(shape) > MAX_AXES:
        raise ValueError(f"an invalid shape of {name[:30]!r}")
    if not all(type(each) is int and 0 <= each < 1 << 48 for each in (*shape, begin, end)):
        raise ValueError(f"invalid numbers in {name[:30]!r}")
    if end - begin != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"a size of {name[:30]!r} that is not its shape's")
    return Entry(dtype, tuple(shape), base + begin, base + end)


def _bytes(source: Source, start: int, count: int) -> bytes:
    room = bytearray(count)
    source.read_into(memoryview(room), start)
    return bytes(room)


def _write(handle: int, content: memoryview) -> int:
    done = 0
    while done < len(content):
        done += os.write(handle, content[done : done + (1 << 24)])
    return len(content)
