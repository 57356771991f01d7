"""Write PyTorch files of the older layout, whole or hostile, without PyTorch."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

KINDS = {"float32": "FloatStorage", "int64": "LongStorage"}
MAGIC = 0x1950A86A20F9469CFC6C
SIZES = (
    b"\x80\x02}q\x00(X\x10\x00\x00\x00protocol_versionM\xe9\x03X\x0d\x00\x00\x00little_endian\x88u."
)


def text(value: str) -> bytes:
    """Return the opcode of a text."""
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def number(value: int) -> bytes:
    """Return the opcode of a whole number."""
    if -(1 << 31) <= value < 1 << 31:
        return b"J" + struct.pack("<i", value)
    size = value.bit_length() // 8 + 1
    return b"\x8a" + bytes([size]) + value.to_bytes(size, "little", signed=True)


def numbers(values: Sequence[int]) -> bytes:
    """Return the opcodes of a tuple of whole numbers."""
    return b"(" + b"".join(map(number, values)) + b"t"


@dataclass
class Entry:
    """A tensor as a file describes it; None takes what its array says."""

    array: NDArray[Any]
    offset: int = 0
    shape: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None
    count: int | None = None
    key: str = ""

    def opcodes(self, key: str) -> bytes:
        shape = self.array.shape if self.shape is None else self.shape
        steps = tuple(stride // self.array.itemsize for stride in self.array.strides)
        count = self.array.size if self.count is None else self.count
        kind = KINDS[self.array.dtype.name]
        return (
            b"ctorch._utils\n_rebuild_tensor_v2\n(("
            + text("storage")
            + f"ctorch\n{kind}\n".encode()
            + text(self.key or key)
            + text("cpu")
            + number(count)
            + b"NtQ"
            + number(self.offset)
            + numbers(shape)
            + numbers(steps if self.strides is None else self.strides)
            + b"\x89ccollections\nOrderedDict\n)RtR"
        )


@dataclass
class PyTorchFile:
    """The parts of a file; a test replaces one of them."""

    entries: dict[str, Entry]
    magic: bytes = b"\x80\x02" + number(MAGIC) + b"."
    version: bytes = b"\x80\x02M\xe9\x03."
    sizes: bytes = SIZES
    tensors: bytes = b""
    keys: bytes = b""
    storages: bytes = b""
    after: bytes = field(default=b"")

    def __post_init__(self) -> None:
        items = [
            (name, f"key {place}", each) for place, (name, each) in enumerate(self.entries.items())
        ]
        pairs = b"".join(text(name) + each.opcodes(key) for name, key, each in items)
        attributes = b"}" + text("_metadata") + b"}sb"
        self.tensors = self.tensors or (
            b"\x80\x02ccollections\nOrderedDict\n)R(" + pairs + b"u" + attributes + b"."
        )
        keys = {each.key or key: each.array for _, key, each in items}
        self.keys = self.keys or b"\x80\x02](" + b"".join(map(text, keys)) + b"e."
        self.storages = self.storages or b"".join(
            struct.pack("<q", array.size) + array.tobytes("A") for array in keys.values()
        )

    def content(self) -> bytes:
        parts = (self.magic, self.version, self.sizes, self.tensors, self.keys, self.storages)
        return b"".join(parts) + self.after


def whole() -> PyTorchFile:
    """Return a file with a kernel, a transposed matrix, a slice and a counter."""
    rng = np.random.default_rng(0)
    shared = rng.normal(size=12).astype(np.float32)
    return PyTorchFile(
        {
            "kernel": Entry(rng.normal(size=(2, 3, 3, 3)).astype(np.float32)),
            "transposed": Entry(np.arange(6, dtype=np.float32), shape=(2, 3), strides=(1, 2)),
            "slice": Entry(shared, offset=4, shape=(3,), strides=(2,)),
            "counter": Entry(np.array(7, np.int64)),
        }
    )
