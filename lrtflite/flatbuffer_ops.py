"""Which ops a `.tflite` file uses, read from the flatbuffer itself.

An interpreter shows a delegated graph as one op, and a runtime without a delegate refuses the file
before anything can be asked; so this reads the few bytes it needs, with no schema library.
Field numbers are those of TensorFlow Lite's `schema.fbs`: Model.operator_codes = 1;
OperatorCode.deprecated_builtin_code = 0, custom_code = 1, version = 2, builtin_code = 3.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from lrtflite.errors import BundleError


@dataclass(frozen=True, order=True)
class Op:
    """An entry of the model's op table: a built-in op's number, or a custom op's name."""

    code: int
    version: int
    custom: str = ""


def read_ops(path: Path) -> list[Op]:
    """The op table of a `.tflite` file, sorted."""
    data = path.read_bytes()
    if data[4:8] != b"TFL3":
        raise BundleError(f"Expected a TFLite file, got {path} without its TFL3 mark")
    try:
        table = _Table(data, struct.unpack_from("<I", data, 0)[0])
        return sorted({_op(entry) for entry in table.tables(1)})
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise BundleError(f"Expected a whole TFLite file, got a damaged one: {path}") from error


def custom_ops(path: Path) -> list[str]:
    """Names of the ops that a stock runtime does not have (a Flex op is one of them)."""
    return [op.custom for op in read_ops(path) if op.custom]


def _op(table: _Table) -> Op:
    # Old files keep the number in the 8-bit field, new ones in the 32-bit field.
    code = max(table.scalar(0, "<b", 0), table.scalar(3, "<i", 0))
    return Op(code, table.scalar(2, "<i", 1), table.string(1))


class _Table:
    """A flatbuffer table at `position`: its vtable lists each field's offset, 0 where absent."""

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

    def tables(self, number: int) -> list[_Table]:
        position = self._field(number)
        if not position:
            return []
        start = self._target(position)
        count = struct.unpack_from("<I", self._data, start)[0]
        return [_Table(self._data, self._target(start + 4 + 4 * i)) for i in range(count)]
