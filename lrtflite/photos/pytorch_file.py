"""Arrays of a PyTorch file of the older layout, read as data: nothing in the file is executed.

The layout has four pickles (a magic number, the version, sizes of types, the object), a fifth one
with the keys of the storages, and then the storages. A pickle is a program that may call any
function, and Python's own reader allocates what the file asks for. So this module reads the few
opcodes that a dictionary of tensors takes. It imports nothing and calls nothing that a file names:
a global is one of four words here, and a tensor is a view of the bytes of a storage.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from lrtflite.arguments import shown
from lrtflite.errors import ModelError, NotRegular, TooShort
from lrtflite.files.reading import read_whole

MAGIC, VERSION = 0x1950A86A20F9469CFC6C, 1001
# Maximum bytes of a file, opcodes of all its pickles, and axes of a tensor.
MAX_BYTES, MAX_OPCODES, MAX_AXES = 1 << 29, 100_000, 8
# Bytes of the longest text or whole number.
MAX_TEXT = 1000
# Kinds of storages: their dtypes, which are little-endian on every machine.
STORAGES: dict[str, np.dtype[Any]] = {
    "torch FloatStorage": np.dtype("<f4"),
    "torch LongStorage": np.dtype("<i8"),
}
ADVICE = "install or download it again"
DICTIONARY, TENSOR = "collections OrderedDict", "torch._utils _rebuild_tensor_v2"


class _Unfit(ValueError):
    """A file that is damaged or holds anything except arrays; the text says what."""


@dataclass(frozen=True)
class _Global:
    """A function or class of STORAGES, DICTIONARY and TENSOR, by its name alone."""

    name: str


@dataclass(frozen=True)
class _Storage:
    """The values of a tensor, before they are read: `count` values under `key`."""

    key: str
    dtype: np.dtype[Any]
    count: int


@dataclass(frozen=True)
class _Tensor:
    """A tensor, as the place of its values in a storage."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _Mark:
    """The beginning of a list of items on the stack."""


def read_content(path: Path) -> bytes:
    """Return the bytes of a file for `read_arrays`, or raise ModelError."""
    try:
        return read_whole(path, most=MAX_BYTES)
    except (OSError, MemoryError, NotRegular, TooShort) as error:
        problem = getattr(error, "strerror", None) or str(error).partition("; ")[0]
        raise ModelError(f"Cannot read {path}: {problem or 'out of memory'}", ADVICE) from error


def read_arrays(path: Path, content: bytes) -> dict[str, NDArray[Any]]:
    """Return the tensors of a PyTorch file by name; raise ModelError if it has anything else.

    `content` has the bytes of the file, `path` is for messages.
    """
    try:
        return _arrays(content)
    except _Unfit as error:
        raise ModelError(
            f"Expected a PyTorch file of the older layout with arrays alone in {path}, got {error}",
            ADVICE,
        ) from error


def _arrays(data: bytes) -> dict[str, NDArray[Any]]:
    pickles = _Pickles(data)
    if pickles.next() != MAGIC or pickles.next() != VERSION:
        raise _Unfit("another magic number or version")
    sizes = pickles.next()
    if not isinstance(sizes, dict) or sizes.get("little_endian") is not True:
        raise _Unfit("values that are not little-endian")
    tensors, keys = pickles.next(), pickles.next()
    if not isinstance(tensors, dict):
        raise _Unfit("no dictionary of tensors")
    storages = _storages(data, pickles.position, keys, _declared(tensors))
    if sum(math.prod(each.shape) * each.storage.dtype.itemsize for each in tensors.values()) > len(
        data
    ):
        raise _Unfit("tensors that repeat each other's values")
    return {name: _view(tensor, storages[tensor.storage.key]) for name, tensor in tensors.items()}


def _declared(tensors: dict[str, Any]) -> dict[str, _Storage]:
    """Return the storages of all tensors by key."""
    found: dict[str, _Storage] = {}
    for name, tensor in tensors.items():
        if not isinstance(tensor, _Tensor):
            raise _Unfit(f"{shown(name)}, which is not a tensor")
        if found.setdefault(tensor.storage.key, tensor.storage) != tensor.storage:
            raise _Unfit("two storages of one key")
    return found


def _storages(
    data: bytes, position: int, keys: Any, declared: dict[str, _Storage]
) -> dict[str, NDArray[Any]]:
    """Return the values of each storage, which lie one after another from `position` on."""
    found: dict[str, NDArray[Any]] = {}
    if not isinstance(keys, list) or len(keys) != len(declared):
        raise _Unfit("more or fewer storages than its tensors name")
    for key in keys:
        storage = declared.get(key) if isinstance(key, str) else None
        if storage is None or key in found:
            raise _Unfit("a storage that no tensor names, or a repeated one")
        if len(data) - position < 8:
            raise _Unfit("the end of the file before its last storage")
        (count,) = struct.unpack_from("<q", data, position)
        size, position = storage.count * storage.dtype.itemsize, position + 8
        if count != storage.count:
            raise _Unfit(f"a storage of {count} values instead of {storage.count}")
        if len(data) - position < size:
            raise _Unfit("the end of the file before its last storage")
        found[key] = np.frombuffer(data, storage.dtype, storage.count, position)
        position += size
    if position != len(data):
        raise _Unfit(f"{len(data) - position} bytes after its last storage")
    return found


def _view(tensor: _Tensor, values: NDArray[Any]) -> NDArray[Any]:
    """Return a copy of a tensor's values, whose places were checked by `_tensor`."""
    if not math.prod(tensor.shape):
        return np.zeros(tensor.shape, values.dtype)
    steps = [stride * values.itemsize for stride in tensor.strides]
    view = as_strided(values[tensor.offset :], tensor.shape, steps, writeable=False)
    return np.array(view, order="C")


def _tensor(arguments: Any) -> _Tensor:
    """Return a tensor from the arguments of PyTorch's function, if it lies within its storage."""
    if not isinstance(arguments, tuple) or len(arguments) != 6:
        raise _Unfit("a tensor with other parts than a storage, its place and its strides")
    storage, offset, shape, strides, _, hooks = arguments
    if not isinstance(storage, _Storage) or hooks != {} or not _is_count(offset):
        raise _Unfit("a tensor with other parts than a storage, its place and its strides")
    if not (_are_counts(shape) and _are_counts(strides)) or len(shape) != len(strides):
        raise _Unfit("a tensor whose shape or strides are not whole numbers of 0 or more")
    last = sum((size - 1) * stride for size, stride in zip(shape, strides))
    values = math.prod(shape)
    # A stride of 0 repeats values, so that a small file could ask for a large array.
    if values > storage.count or (values and offset + last >= storage.count):
        raise _Unfit("a tensor that reaches beyond its storage")
    return _Tensor(storage, offset, shape, strides)


def _storage(parts: Any) -> _Storage:
    """Return a storage from its persistent id."""
    if isinstance(parts, tuple) and len(parts) == 6:
        word, kind, key, _, count, view = parts
        name = kind.name if isinstance(kind, _Global) else ""
        if word == "storage" and name in STORAGES and isinstance(key, str) and view is None:
            if not _is_count(count) or count > MAX_BYTES:
                raise _Unfit("a storage whose size is not a whole number in range")
            return _Storage(key, STORAGES[name], count)
    raise _Unfit("a persistent id that is not a storage of float32 or int64 values")


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 40


def _are_counts(values: Any) -> bool:
    return isinstance(values, tuple) and len(values) <= MAX_AXES and all(map(_is_count, values))


class _Pickles:
    """A reader of one pickle after another; `position` is the first byte that was not read."""

    def __init__(self, data: bytes) -> None:
        self.position = 0
        self._data, self._opcodes = data, 0
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def next(self) -> Any:
        """Return the next object: numbers, text, lists, dictionaries and tensors."""
        self._stack, self._memo = [], {}
        while True:
            opcode = self._take(1)
            self._opcodes += 1
            if self._opcodes > MAX_OPCODES:
                raise _Unfit(f"more than {MAX_OPCODES:,} opcodes")
            if opcode == b".":
                break
            if opcode not in _OPCODES:
                raise _Unfit(f"the opcode {opcode!r}, which no dictionary of tensors needs")
            _OPCODES[opcode](self)
        found = self._pop()
        if self._stack:
            raise _Unfit("a pickle with more than one object")
        return found

    def _take(self, count: int) -> bytes:
        if count > len(self._data) - self.position:
            raise _Unfit("the end of the file in the middle of a pickle")
        self.position += count
        return self._data[self.position - count : self.position]

    def _number(self, form: str) -> int:
        return int(struct.unpack(form, self._take(struct.calcsize(form)))[0])

    def _pop(self) -> Any:
        if not self._stack or isinstance(self._stack[-1], _Mark):
            raise _Unfit("an opcode without its operands")
        return self._stack.pop()

    def _top(self, kind: type) -> Any:
        if not self._stack or not isinstance(self._stack[-1], kind):
            raise _Unfit("an opcode without its operands")
        return self._stack[-1]

    def _marked(self) -> list[Any]:
        """Return the items since the last mark, and take them and the mark off the stack."""
        items: list[Any] = []
        while self._stack:
            item = self._stack.pop()
            if isinstance(item, _Mark):
                return items[::-1]
            items.append(item)
        raise _Unfit("an opcode without its mark")

    def proto(self) -> None:
        if self._number("<B") != 2:
            raise _Unfit("another protocol of pickles than 2")

    def text(self) -> None:
        length = self._number("<I")
        if length > MAX_TEXT:
            raise _Unfit(f"a text of more than {MAX_TEXT} bytes")
        try:
            self._stack.append(self._take(length).decode())
        except UnicodeDecodeError as error:
            raise _Unfit("a text that is not UTF-8") from error

    def long(self) -> None:
        self._stack.append(int.from_bytes(self._take(self._number("<B")), "little", signed=True))

    def name(self) -> None:
        """Put a global on the stack; the file names it in two lines."""
        end = self._data.find(b"\n", self.position, self.position + MAX_TEXT)
        stop = self._data.find(b"\n", end + 1, end + 1 + MAX_TEXT) if end >= 0 else -1
        if stop < 0:
            raise _Unfit("a global without its name")
        name = self._take(stop + 1 - self.position)[:-1].replace(b"\n", b" ").decode("latin-1")
        if name not in (*STORAGES, DICTIONARY, TENSOR):
            raise _Unfit(f"the global {shown(name)}, which is not a part of an array")
        self._stack.append(_Global(name))

    def reduce(self) -> None:
        arguments, function = self._pop(), self._pop()
        if function == _Global(DICTIONARY) and arguments == ():
            self._stack.append({})
        elif function == _Global(TENSOR):
            self._stack.append(_tensor(arguments))
        else:
            raise _Unfit("a call of something other than a tensor or an empty dictionary")

    def build(self) -> None:
        """Leave out the attributes of a dictionary: PyTorch notes versions of layers there."""
        self._pop()
        self._top(dict)

    def persistent(self) -> None:
        self._stack.append(_storage(self._pop()))

    def put(self, form: str) -> None:
        self._memo[self._number(form)] = self._top(object)

    def get(self, form: str) -> None:
        number = self._number(form)
        if number not in self._memo:
            raise _Unfit("a reference to nothing")
        self._stack.append(self._memo[number])

    def push(self, value: Any) -> None:
        self._stack.append(value)

    def several(self, count: int) -> None:
        items = [self._pop() for _ in range(count)]
        self._stack.append(tuple(items[::-1]))

    def tuple_since_mark(self) -> None:
        self._stack.append(tuple(self._marked()))

    def set_items(self, items: list[Any]) -> None:
        found = self._top(dict)
        if len(items) % 2 or not all(type(key) is str for key in items[::2]):
            raise _Unfit("a dictionary whose keys are not texts")
        found.update(zip(items[::2], items[1::2]))

    def set_one(self) -> None:
        value, key = self._pop(), self._pop()
        self.set_items([key, value])

    def set_marked(self) -> None:
        self.set_items(self._marked())

    def append_marked(self) -> None:
        items = self._marked()
        self._top(list).extend(items)


_OPCODES: dict[bytes, Callable[[_Pickles], None]] = {
    b"\x80": _Pickles.proto,
    b"X": _Pickles.text,
    b"\x8a": _Pickles.long,
    b"K": lambda pickles: pickles.push(pickles._number("<B")),
    b"M": lambda pickles: pickles.push(pickles._number("<H")),
    b"J": lambda pickles: pickles.push(pickles._number("<i")),
    b"N": lambda pickles: pickles.push(None),
    b"\x88": lambda pickles: pickles.push(True),
    b"\x89": lambda pickles: pickles.push(False),
    b"(": lambda pickles: pickles.push(_Mark()),
    b")": lambda pickles: pickles.push(()),
    b"]": lambda pickles: pickles.push([]),
    b"}": lambda pickles: pickles.push({}),
    b"t": _Pickles.tuple_since_mark,
    b"\x85": lambda pickles: pickles.several(1),
    b"\x86": lambda pickles: pickles.several(2),
    b"\x87": lambda pickles: pickles.several(3),
    b"c": _Pickles.name,
    b"R": _Pickles.reduce,
    b"b": _Pickles.build,
    b"Q": _Pickles.persistent,
    b"q": lambda pickles: pickles.put("<B"),
    b"r": lambda pickles: pickles.put("<I"),
    b"h": lambda pickles: pickles.get("<B"),
    b"j": lambda pickles: pickles.get("<I"),
    b"s": _Pickles.set_one,
    b"u": _Pickles.set_marked,
    b"e": _Pickles.append_marked,
}
