"""Tensor files: literal bytes, and headers that no writer makes."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lrtflite.errors import DamagedState, StateError
from lrtflite.files.reading import BytesSource
from lrtflite.files.tensors import MAX_HEADER, Outgoing, TensorFile, write_tensors

HEADER = (
    b'{"__metadata__":{"format":"5"},'
    b'"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},'
    b'"b":{"dtype":"U8","shape":[1,3],"data_offsets":[8,11]},'
    b'"sha256":{"dtype":"U8","shape":[32],"data_offsets":[11,43]}}'
)


def golden() -> bytes:
    """Return a file as docs/state.md describes it, byte by byte."""
    header = HEADER + b" " * (-len(HEADER) % 8)
    body = len(header).to_bytes(8, "little") + header
    body += bytes.fromhex("0000803f 00000040") + bytes([7, 8, 9])
    return body + hashlib.sha256(body).digest()


def opened(content: bytes) -> TensorFile:
    return TensorFile(BytesSource(content, "file"))


def crafted(header: Any, rest: bytes = b"") -> bytes:
    """Return a file with this header, and a digest that is right."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    body = len(text).to_bytes(8, "little") + text + rest
    return body + hashlib.sha256(body).digest()


def test_the_bytes_are_those_of_the_documents(tmp_path: Path) -> None:
    arrays: dict[str, Any] = {
        "a": np.array([1, 2], np.float32),
        "b": np.array([[7, 8, 9]], np.uint8),
    }
    handle = os.open(tmp_path / "file", os.O_WRONLY | os.O_CREAT)
    stamp = write_tensors(
        handle, {"format": "5"}, {name: Outgoing.of(values) for name, values in arrays.items()}
    )
    os.close(handle)
    written = (tmp_path / "file").read_bytes()
    assert written == golden()
    assert (stamp.bytes, stamp.sha256) == (len(written), written[-32:].hex())
    found = opened(written)
    found.check(stamp)
    assert found.meta == {"format": "5"}
    for name, values in arrays.items():
        np.testing.assert_array_equal(found.read(name), values)


def test_every_flipped_bit_and_every_missing_byte_is_found() -> None:
    whole = golden()
    for place in range(8 * len(whole)):
        content = bytearray(whole)
        content[place // 8] ^= 1 << place % 8
        with pytest.raises(DamagedState):
            opened(bytes(content)).check()
    for end in range(len(whole)):
        with pytest.raises(DamagedState):
            opened(whole[:end]).check()
    with pytest.raises(DamagedState):
        opened(whole + b"\0").check()


SHA = {"dtype": "U8", "shape": [32], "data_offsets": [0, 32]}


@pytest.mark.parametrize(
    "header",
    [
        b"[]",
        b"{}",
        b"{",
        b"\xff\xff",
        b"[" * 100_000,
        b'{"sha256":1}',
        b'{"a":' + b"9" * 5000 + b"}",
        b'{"sha256":NaN}',
        {"sha256": {**SHA, "dtype": "F99"}},
        {"sha256": {**SHA, "dtype": []}},
        {"sha256": {**SHA, "shape": [-32]}},
        {"sha256": {**SHA, "shape": [32.0]}},
        {"sha256": {**SHA, "shape": [True] * 32}},
        {"sha256": {**SHA, "shape": [1] * 40}},
        {"sha256": {**SHA, "shape": [2**62, 2**62]}},
        {"sha256": {**SHA, "data_offsets": [32, 0]}},
        {"sha256": {**SHA, "data_offsets": [0]}},
        {"sha256": {**SHA, "data_offsets": [-8, 24]}},
        {"sha256": {**SHA, "more": 1}},
        {"sha256": SHA, "__metadata__": {"a": 1}},
        {"sha256": SHA, "__metadata__": []},
        {"a": SHA, "sha256": SHA},
        {"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}, "sha256": SHA},
    ],
    ids=repr,
)
def test_headers_that_no_writer_makes(header: Any) -> None:
    with pytest.raises(DamagedState):
        opened(crafted(header))


def test_a_name_twice_and_a_header_that_is_too_long() -> None:
    one = json.dumps(SHA)
    with pytest.raises(DamagedState, match="twice"):
        opened(crafted(f'{{"sha256":{one},"sha256":{one}}}'.encode()))
    with pytest.raises(DamagedState, match="header"):
        opened((MAX_HEADER + 8).to_bytes(8, "little") + b" " * (MAX_HEADER + 100))
    # A file that a writer without such a limit made is whole: nothing falls back from it.
    whole = (MAX_HEADER + 8).to_bytes(8, "little") + b" " * (MAX_HEADER + 100)
    with pytest.raises(StateError, match=r"at most 8,388,608 .* got 8,388,616; fold") as caught:
        opened(whole + hashlib.sha256(whole).digest())
    assert not isinstance(caught.value, DamagedState)


def test_other_readers_of_safetensors_agree(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    found = safetensors.load(golden())
    assert found["a"].tolist() == [1, 2]
