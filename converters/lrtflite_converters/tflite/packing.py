"""Parts of a TFLite file as objects of the schema, and the file that they make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import flatbuffers
import numpy as np
from numpy.typing import NDArray
from tensorflow.lite.python import schema_py_generated as schema

MARK = b"TFL3"
# Bytes that the constants of a TFLite file are aligned to, as in TensorFlow's own files.
ALIGNMENT = 16


class AlignedBuffer(schema.BufferT):
    """A constant whose bytes are aligned; the generated class aligns to 4 bytes only."""

    def __init__(self, data: Any = None) -> None:
        super().__init__()
        self.data = data

    @classmethod
    def of(cls, value: NDArray[Any]) -> AlignedBuffer:
        """Return the bytes of an array."""
        return cls(np.frombuffer(np.ascontiguousarray(value).tobytes(), np.uint8))

    def Pack(self, builder: Any) -> Any:  # noqa: N802 - the name in the schema's classes
        at = None
        if self.data is not None and len(self.data):
            content = np.asarray(self.data, np.uint8).tobytes()
            builder.StartVector(1, len(content), ALIGNMENT)
            builder.head -= len(content)
            builder.Bytes[builder.head : builder.head + len(content)] = content
            at = builder.EndVector()
        schema.BufferStart(builder)
        if at is not None:
            schema.BufferAddData(builder, at)
        return schema.BufferEnd(builder)


def operator_code(code: int, version: int) -> Any:
    """Return the entry of the table of ops for one kind of op."""
    made = schema.OperatorCodeT()
    # Old readers know the 8-bit field only.
    made.deprecatedBuiltinCode, made.builtinCode = min(code, 127), code
    made.version = version
    return made


def signature(name: str, inputs: Mapping[str, int], outputs: Mapping[str, int]) -> Any:
    """Return a signature of the first subgraph; tensors are given by their numbers."""
    made = schema.SignatureDefT()
    made.signatureKey, made.subgraphIndex = name, 0
    made.inputs, made.outputs = _maps(inputs), _maps(outputs)
    return made


def numbers(values: Iterable[int] | None) -> list[int]:
    """Return a vector of the schema, which may be missing, as whole numbers."""
    return [] if values is None else [int(value) for value in values]


def packed(model: Any) -> bytes:
    """Return the file of a model, whose constants are aligned."""
    model.buffers = [AlignedBuffer(buffer.data) for buffer in model.buffers]
    builder = flatbuffers.Builder(1 << 20)
    builder.Finish(model.Pack(builder), file_identifier=MARK)
    return bytes(builder.Output())


def _maps(tensors: Mapping[str, int]) -> list[Any]:
    made = []
    for name, number in tensors.items():
        entry = schema.TensorMapT()
        entry.name, entry.tensorIndex = name, number
        made.append(entry)
    return made
