"""PyTorch files are read as data: hostile ones run nothing, allocate little and end in one line."""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lrtflite.errors import ModelError
from lrtflite.photos.pytorch_file import MAX_OPCODES, read_arrays, read_content
from pytorch_files import Entry, PyTorchFile, number, text, whole

pytestmark = pytest.mark.slow

NAME = Path("weights.pth")
CALLED: list[str] = []


def called(word: str) -> None:
    """Note that a file ran this."""
    CALLED.append(word)


class Reduced:
    def __reduce__(self) -> Any:
        return called, ("reduce",)


class Built:
    def __setstate__(self, state: Any) -> None:
        called("build")


def refusal(content: bytes) -> str:
    with pytest.raises(ModelError) as caught:
        read_arrays(NAME, content)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("Expected a PyTorch file of the older layout")
    return str(caught.value)


def test_tensors_are_views_of_their_storages() -> None:
    found = read_arrays(NAME, whole().content())
    entries = whole().entries
    assert list(found) == list(entries)
    np.testing.assert_array_equal(found["kernel"], entries["kernel"].array)
    np.testing.assert_array_equal(found["transposed"], [[0, 2, 4], [1, 3, 5]])
    np.testing.assert_array_equal(found["slice"], entries["slice"].array[[4, 6, 8]])
    assert found["counter"] == 7
    assert {array.dtype.name for array in found.values()} == {"float32", "int64"}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("thing", [Reduced(), Built(), os.system, {"a": Reduced()}, b"bytes"])
def test_pickles_of_anything_else_run_nothing(protocol: int, thing: Any) -> None:
    CALLED.clear()
    for part in ("magic", "sizes", "tensors", "keys"):
        file = whole()
        setattr(file, part, pickle.dumps(thing, protocol))
        refusal(file.content())
    assert CALLED == []


SYSTEM = b"cos\nsystem\n"
# A program that Python's own reader would run, after the two bytes of its protocol.
PROGRAMS = {
    "GLOBAL and REDUCE": SYSTEM + b"(" + text("false") + b"tR.",
    "STACK_GLOBAL": text("os") + text("system") + b"\x93(" + text("false") + b"tR.",
    "INST": b"(" + text("false") + b"ios\nsystem\n.",
    "OBJ": b"(" + SYSTEM + text("false") + b"o.",
    "NEWOBJ": SYSTEM + b")\x81.",
    "NEWOBJ_EX": SYSTEM + b")}\x92.",
    "EXT1": b"\x82\x01.",
    "EXT2": b"\x83\x01\x00.",
    "EXT4": b"\x84\x01\x00\x00\x00.",
    "BUILD": b"ctorch\nFloatStorage\n}" + text("__dict__") + b"Nsb.",
    "a call of a storage": b"ctorch\nFloatStorage\n)R.",
    "a dictionary of arguments": b"ccollections\nOrderedDict\n((" + text("a") + b"NttR.",
    "another function of PyTorch": b"ctorch._utils\n_rebuild_parameter\n)R.",
    "a name with a dot": b"ccollections\nOrderedDict.fromkeys\n)R.",
    "a name with a space": b"ctorch FloatStorage\n\n)R.",
    "PERSID": b"Pstorage\n.",
    "a persistent id of another kind": b"("
    + text("storage")
    + SYSTEM
    + text("0") * 2
    + b"K\x01NtQ.",
    "a text as persistent id": text("storage") + b"Q.",
    "another protocol": b"\x80\x04N.",
    "a long text": b"X\xff\xff\xff\xff",
    "a long text of eight bytes": b"\x8d" + b"\xff" * 8,
    "a long number": b"\x8b\xff\xff\xff\x7f",
    "a frame": b"\x95" + b"\xff" * 8,
    "a memo of four thousand million": b"Nr\xff\xff\xff\xffN.",
    "a reference to nothing": b"h\x07.",
    "a long reference to nothing": b"j\xff\xff\xff\xff.",
    "no operands": b"R.",
    "no mark": b"u.",
    "a mark as an operand": b"(Q.",
    "two objects": b"NN.",
    "nothing": b".",
    "a key that is no text": b"}K\x01Ns.",
    "a dictionary that holds itself": b"}q\x00" + text("a") + b"h\x00s.",
    "a list as a key": b"}]Ns.",
    "a name without an end": b"c" + b"a" * 5000,
    "text that is not UTF-8": b"X\x01\x00\x00\x00\xff.",
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_are_refused(program: str) -> None:
    file = whole()
    file.tensors = b"\x80\x02" + PROGRAMS[program]
    said = refusal(file.content())
    assert "which is not a part of an array" in said or "system" not in said


def test_bombs_end_soon_in_little_memory() -> None:
    import tracemalloc

    doubled = b"(Nt" + b"q\x00h\x00\x86" * 50_000 + b"."
    nested = b")" + b"\x85" * (MAX_OPCODES - 10) + b"."
    endless = b"}0" * MAX_OPCODES
    many = b"N" * (2 * MAX_OPCODES)
    texts = (text("a" * 1000) + b"q\x00") * 2000
    tracemalloc.start()
    try:
        for bomb in (doubled, nested, endless, many, texts):
            refusal(PyTorchFile({}, tensors=b"\x80\x02" + bomb).content())
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()


EIGHT = np.arange(8, dtype=np.float32)
HUGE = 1 << 39
# Tensors that do not lie within a storage of eight values.
BEYOND = {
    "an offset": Entry(EIGHT, offset=1),
    "a far offset": Entry(EIGHT, offset=HUGE, shape=(1,), strides=(1,)),
    "a negative offset": Entry(EIGHT, offset=-1),
    "a stride": Entry(EIGHT, shape=(2, 4), strides=(5, 1)),
    "a negative stride": Entry(EIGHT, offset=7, shape=(8,), strides=(-1,)),
    "strides that wrap around": Entry(EIGHT, shape=(2, 2), strides=(HUGE, HUGE)),
    "strides of more than 64 bits": Entry(EIGHT, shape=(2,), strides=(1 << 62,)),
    "a shape": Entry(EIGHT, shape=(9,), strides=(1,)),
    "a shape that repeats": Entry(EIGHT, shape=(HUGE,), strides=(0,)),
    "a shape that wraps around": Entry(EIGHT, shape=(HUGE, HUGE), strides=(0, 0)),
    "a negative shape": Entry(EIGHT, shape=(-8,), strides=(1,)),
    "more strides": Entry(EIGHT, shape=(8,), strides=(1, 1)),
    "many axes": Entry(EIGHT, shape=(1,) * 40, strides=(1,) * 40),
    "a storage of more values": Entry(EIGHT, count=9),
    "a storage of fewer values": Entry(EIGHT, count=7, shape=(7,)),
    "a storage of very many values": Entry(EIGHT, count=HUGE),
    "a storage of negative size": Entry(EIGHT, count=-8),
}


@pytest.mark.parametrize("name", BEYOND)
def test_tensors_beyond_their_storage_are_refused(name: str) -> None:
    refusal(PyTorchFile({"a": BEYOND[name]}).content())


def test_tensors_that_repeat_a_storage_are_refused() -> None:
    """A thousand tensors of one storage would take a thousand times the bytes of the file."""
    large = np.zeros(100_000, np.float32)
    entries = {f"tensor {place}": Entry(large, key="one") for place in range(1000)}
    assert "repeat" in refusal(PyTorchFile(entries).content())


def test_storages_that_do_not_match_are_refused() -> None:
    file = whole()
    keys = [b"]", b"}", b"](" + text("key 0") * 4 + b"e", b"](" + number(1) * 4 + b"e"]
    for each in keys:
        refusal(PyTorchFile(file.entries, keys=b"\x80\x02" + each + b".").content())
    short = file.storages[:-1]
    for storages in (short, file.storages + b"\0", struct.pack("<q", -1) + file.storages[8:]):
        refusal(PyTorchFile(file.entries, storages=storages).content())
    two = {"a": Entry(EIGHT, key="one"), "b": Entry(EIGHT, key="one", count=7, shape=(7,))}
    refusal(PyTorchFile(two).content())


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("magic", b"\x80\x02" + number(1) + b"."),
        ("version", b"\x80\x02M\xe8\x03."),
        ("sizes", b"\x80\x02}" + text("little_endian") + b"\x89s."),
        ("sizes", b"\x80\x02N."),
        ("tensors", b"\x80\x02K\x01."),
        ("tensors", b"\x80\x02}" + text("a") + b"K\x01s."),
    ],
)
def test_other_layouts_are_refused(part: str, value: bytes) -> None:
    file = whole()
    setattr(file, part, value)
    refusal(file.content())
    refusal(b"PK\x03\x04" + bytes(100))  # PyTorch's newer layout is a zip


def test_truncated_files_are_refused() -> None:
    content = whole().content()
    for end in range(len(content)):
        refusal(content[:end])


def test_flipped_bits_are_refused_or_change_values_alone() -> None:
    content = whole().content()
    size = sum(array.size for array in read_arrays(NAME, content).values())
    bits = np.random.default_rng(0).integers(0, 8, len(content))
    for place, bit in enumerate(bits):
        changed = bytearray(content)
        changed[place] ^= 1 << bit
        with suppress(ModelError):
            found = read_arrays(NAME, bytes(changed))
            assert sum(array.size for array in found.values()) <= size


def test_random_opcodes_end_in_one_line() -> None:
    rng = np.random.default_rng(0)
    alphabet = np.frombuffer(b"XKMJN\x88\x89()]}t\x85\x86\x87cRbQqrhjsue.", np.uint8)
    for _ in range(2000):
        program = rng.choice(alphabet, rng.integers(1, 60)).tobytes()
        refusal(PyTorchFile({}, tensors=b"\x80\x02" + program).content())


def test_files_that_cannot_be_read_are_one_line(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to(NAME)
    for path in (tmp_path / "absent", tmp_path, tmp_path / "fifo", tmp_path / "link"):
        with pytest.raises(ModelError, match=r"^Cannot read [^\n]*; install or download it again$"):
            read_content(path)


def test_only_numpy_is_imported() -> None:
    program = (
        "import sys, lrtflite.photos.weights as weights; weights.units();"
        "print(sorted({name.partition('.')[0] for name in sys.modules} & {'pickle', 'torch',"
        "'tensorflow', weights.PACKAGE}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    # numpy imports pickle, which reads nothing here.
    assert done.stdout.strip() in ("[]", "['pickle']"), done.stderr
