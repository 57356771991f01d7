"""Read fields of a `.tflite` flatbuffer, table by table, without a schema library."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, TypeVar

from lrtflite.errors import BundleError
from lrtflite.files.bundle_file import BundleFile

Found = TypeVar("Found")
# Maximum number of tables in a list; models have some dozens of ops and signatures.
MAX_TABLES = 10_000
# Maximum number of bytes of a `.tflite` file, whose offsets are 32-bit numbers.
MAX_BYTES = 1 << 31


def read_model(file: Path | BundleFile, read: Callable[[FlatTable], Found]) -> Found:
    """Apply `read` to the root table of a `.tflite` file, or raise BundleError if it is damaged."""
    file = BundleFile.of(file)
    path, data = file.path, file.read(most=MAX_BYTES)
    if data[4:8] != b"TFL3":
        raise BundleError(
            f"Expected a TFLite file, got {path} without its TFL3 mark", "copy the bundle again"
        )
    try:
        return read(FlatTable(data, struct.unpack_from("<I", data, 0)[0]))
    except (struct.error, IndexError, UnicodeDecodeError, RecursionError) as error:
        raise BundleError(
            f"Expected a complete TFLite file, got a damaged one: {path}", "copy the bundle again"
        ) from error


class FlatTable:
    """A table at `position`. Its vtable has the offset of each field, 0 for a missing one."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data, self._position = data, position
        self._vtable = position - struct.unpack_from("<i", data, position)[0]
        self._size = struct.unpack_from("<H", data, self._vtable)[0]

    def _field(self, number: int) -> int:
        slot = 4 + 2 * number
        if slot >= self._size:
            return 0
        offset = int(struct.unpack_from("<H", self._data, self._vtable + slot)[0])
        return self._position + offset if offset else 0

    def _target(self, position: int) -> int:
        return position + int(struct.unpack_from("<I", self._data, position)[0])

    def scalar(self, number: int, form: str, default: int) -> int:
        position = self._field(number)
        return int(struct.unpack_from(form, self._data, position)[0]) if position else default

    def string(self, number: int) -> str:
        position = self._field(number)
        if not position:
            return ""
        start = self._target(position)
        length = struct.unpack_from("<I", self._data, start)[0]
        return self._data[start + 4 : start + 4 + length].decode()

    def tables(self, number: int) -> list[FlatTable]:
        position = self._field(number)
        if not position:
            return []
        start = self._target(position)
        count = struct.unpack_from("<I", self._data, start)[0]
        if count > MAX_TABLES:
            raise IndexError(count)
        return [FlatTable(self._data, self._target(start + 4 + 4 * i)) for i in range(count)]


@dataclass(frozen=True, order=True)
class Op:
    """An entry of the model's op table: a built-in op's number, or a custom op's name."""

    code: int
    version: int
    custom: str = ""


def read_ops(file: Path | BundleFile) -> list[Op]:
    """Return the op table of a `.tflite` file, sorted."""
    return read_model(file, lambda model: sorted({_op(entry) for entry in model.tables(1)}))


def custom_ops(file: Path | BundleFile) -> list[str]:
    """Return the names of the ops that a stock runtime lacks, including Flex ops."""
    return [op.custom for op in read_ops(file) if op.custom]


def _op(table: FlatTable) -> Op:
    # Old files keep the number in the 8-bit field, new ones in the 32-bit field.
    code = max(table.scalar(0, "<b", 0), table.scalar(3, "<i", 0))
    return Op(code, table.scalar(2, "<i", 1), table.string(1))
