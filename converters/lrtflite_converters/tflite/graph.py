"""A TFLite graph as Python objects: tensors, ops, and changes to both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tensorflow.lite.python import schema_py_generated as schema

Code = schema.BuiltinOperator
# Types of tensors, by their number in the schema.
DTYPES: dict[int, Any] = {
    schema.TensorType.FLOAT32: np.float32,
    schema.TensorType.INT32: np.int32,
    schema.TensorType.UINT8: np.uint8,
    schema.TensorType.INT64: np.int64,
    schema.TensorType.BOOL: np.bool_,
    schema.TensorType.INT16: np.int16,
    schema.TensorType.INT8: np.int8,
}
_TYPES = {np.dtype(dtype): number for number, dtype in DTYPES.items()}
_NAMES = {value: name for name, value in vars(Code).items() if name.isupper()}


@dataclass(eq=False)
class Tensor:
    """A tensor; `value` is None unless it is a constant. `kind` is its number in the schema."""

    name: str
    shape: tuple[int, ...]
    kind: int
    value: NDArray[Any] | None = None
    quantization: Any = None

    @classmethod
    def constant(cls, name: str, value: NDArray[Any]) -> Tensor:
        value = np.ascontiguousarray(value)
        return cls(name, tuple(value.shape), _TYPES[value.dtype], value)

    @classmethod
    def float32(cls, name: str, shape: Sequence[int]) -> Tensor:
        return cls(name, tuple(shape), schema.TensorType.FLOAT32)

    @property
    def is_constant(self) -> bool:
        return self.value is not None

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(DTYPES[self.kind])


@dataclass(eq=False)
class Op:
    """An op; an input that is left out is None. `options` is an object of the schema, or None."""

    code: int
    inputs: list[Tensor | None]
    outputs: list[Tensor]
    options: Any = None
    options_type: int = 0
    version: int = 1

    @property
    def name(self) -> str:
        return _NAMES.get(self.code, f"op {self.code}")

    @property
    def output(self) -> Tensor:
        return self.outputs[0]

    def takes(self, tensor: Tensor) -> bool:
        return any(each is tensor for each in self.inputs)


@dataclass
class Graph:
    """Ops in an order in which they can run, and the tensors that go in and come out by name."""

    ops: list[Op]
    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor] = field(default_factory=dict)

    @property
    def tensors(self) -> list[Tensor]:
        """Return every tensor once: inputs, then those of the ops in their order."""
        found: dict[int, Tensor] = {id(each): each for each in self.inputs.values()}
        for op in self.ops:
            for tensor in (*op.inputs, *op.outputs):
                if tensor is not None:
                    found.setdefault(id(tensor), tensor)
        for tensor in self.outputs.values():
            found.setdefault(id(tensor), tensor)
        return list(found.values())

    def maker(self, tensor: Tensor | None) -> Op | None:
        """Return the op that computes a tensor; None for an input or a constant."""
        for op in self.ops:
            if any(each is tensor for each in op.outputs):
                return op
        return None

    def users(self, tensor: Tensor) -> list[Op]:
        return [op for op in self.ops if op.takes(tensor)]

    def used_once(self, tensor: Tensor) -> bool:
        """Return whether exactly one op takes the tensor, which is not an output."""
        given = any(each is tensor for each in self.outputs.values())
        return not given and len(self.users(tensor)) == 1

    def replace(self, old: Tensor, new: Tensor) -> None:
        """Let everything that takes `old` take `new`."""
        for op in self.ops:
            op.inputs = [new if each is old else each for each in op.inputs]
        self.outputs = {name: new if t is old else t for name, t in self.outputs.items()}

    def insert_after(self, op: Op, *new: Op) -> None:
        place = next(i for i, each in enumerate(self.ops) if each is op) + 1
        self.ops[place:place] = new

    def remove(self, *gone: Op) -> None:
        self.ops = [op for op in self.ops if not any(op is each for each in gone)]

    def drop_dead(self) -> None:
        """Remove ops that no output depends on."""
        wanted = {id(each) for each in self.outputs.values()}
        kept = []
        for op in reversed(self.ops):
            if any(id(each) in wanted for each in op.outputs):
                kept.append(op)
                wanted.update(id(each) for each in op.inputs if each is not None)
        self.ops = kept[::-1]
