"""The ops that a `.tflite` file uses, read from the flatbuffer itself.

An interpreter shows a delegated graph as one op, and a runtime that lacks an op refuses the file
before it lists any. So this module reads the few bytes it needs, without a schema library.
Field numbers are those of TensorFlow Lite's `schema.fbs`: Model.operator_codes = 1;
OperatorCode.deprecated_builtin_code = 0, custom_code = 1, version = 2, builtin_code = 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lrtflite.flatbuffer import FlatTable, read_model


@dataclass(frozen=True, order=True)
class Op:
    """An entry of the model's op table: a built-in op's number, or a custom op's name."""

    code: int
    version: int
    custom: str = ""


def read_ops(path: Path, content: bytes | None = None) -> list[Op]:
    """Return the op table of a `.tflite` file, sorted; `content` has its bytes if at hand."""
    return read_model(
        path, lambda model: sorted({_op(entry) for entry in model.tables(1)}), content
    )


def custom_ops(path: Path, content: bytes | None = None) -> list[str]:
    """Return the names of the ops that a stock runtime lacks, including Flex ops."""
    return [op.custom for op in read_ops(path, content) if op.custom]


def _op(table: FlatTable) -> Op:
    # Old files keep the number in the 8-bit field, new ones in the 32-bit field.
    code = max(table.scalar(0, "<b", 0), table.scalar(3, "<i", 0))
    return Op(code, table.scalar(2, "<i", 1), table.string(1))
