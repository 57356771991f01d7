"""Readers of files that somebody else made: only LrtfliteError escapes, within limits of RAM.

`make fuzz` runs the same tests with LRTFLITE_FUZZ, the number of examples of each.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from lrtflite import read_image
from lrtflite.bundle.bundle import Bundle
from lrtflite.bundle.manifest import OPTIONAL
from lrtflite.bundle.manifest_json import read_manifest
from lrtflite.contract.golden import read_golden
from lrtflite.contract.signatures import read_signatures
from lrtflite.data import open_source
from lrtflite.data.media import count_frames
from lrtflite.errors import LrtfliteError
from lrtflite.files.reading import BytesSource
from lrtflite.files.tensors import METADATA, Outgoing, TensorFile, write_tensors
from lrtflite.frames import image_file
from lrtflite.runtime.flatbuffer import read_ops
from lrtflite.state.folder import read_state
from lrtflite.state.history import Folded, History, TaughtSession
from lrtflite.state.reading import open_state, read_opened, read_state_file, write_state
from lrtflite.state.record import Record
from states import contents, meta_of, put, state, write_all

EXAMPLES = int(os.environ.get("LRTFLITE_FUZZ", "60"))
# Bytes that reading a small file may take: some headers and arrays, and the reader's own objects.
MAX_RAM = 64 << 20

fuzzed = settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
# A place in the file, and what to put there.
edits = st.lists(
    st.tuples(st.floats(0, 1), st.sampled_from(["flip", "cut", "insert", "repeat"]), st.binary()),
    min_size=1,
    max_size=4,
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def edited(content: bytes, changes: list[tuple[float, str, bytes]]) -> bytes:
    for where, how, more in changes:
        place = int(where * len(content))
        if how == "flip" and place < len(content):
            bit = 1 << (more[0] % 8 if more else 0)
            content = content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :]
        elif how == "cut":
            content = content[:place]
        elif how == "insert":
            content = content[:place] + more + content[place:]
        else:
            content = content[:place] + content[max(0, place - 40) :]
    return content


@contextlib.contextmanager
def within_limits() -> Iterator[None]:
    """Let LrtfliteError pass, and nothing else; fail for too much RAM."""
    tracemalloc.start()
    try:
        with contextlib.suppress(LrtfliteError):
            yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MAX_RAM


def json_of(demo: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((demo / "manifest.json").read_text())
    return found


@fuzzed
@given(changes=edits)
def test_bytes_of_a_manifest(demo: Path, changes: list[tuple[float, str, bytes]]) -> None:
    whole = (demo / "manifest.json").read_bytes()
    text = edited(whole, changes).decode(errors="replace")
    with within_limits():
        read_manifest(text, where="here").to_json()


@fuzzed
@given(data=st.data())
def test_values_of_a_manifest(demo: Path, data: st.DataObject) -> None:
    found = {**json_of(demo), **dict.fromkeys(OPTIONAL), "requires": []}
    name = data.draw(st.sampled_from(sorted(found)))
    if isinstance(found[name], dict) and found[name] and data.draw(st.booleans()):
        inner = data.draw(st.sampled_from(sorted(found[name])))
        found[name] = {**found[name], inner: data.draw(values)}
    else:
        found[name] = data.draw(values)
    with within_limits():
        manifest = read_manifest(json.dumps(found), where="here")
        manifest.to_json()
        assert manifest.latent_bytes > 0
        assert str(manifest.measured)


@fuzzed
@given(changes=edits, choice=st.integers(0, 20))
def test_bytes_of_a_state_folder(
    tmp_path: Path, changes: list[tuple[float, str, bytes]], choice: int
) -> None:
    folder = tmp_path / "fuzzed"
    shutil.rmtree(folder, ignore_errors=True)
    put(folder, 1)
    files = contents(folder)
    name = sorted(files)[choice % len(files)]
    write_all(folder, {**files, name: edited(files[name], changes)})
    with within_limits():
        read_state(folder)


def write_crafted(path: Path, record: dict[str, str], found: Any, arrays: dict[str, Any]) -> None:
    """Write a state of any values, with a right digest."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    write_tensors(
        handle,
        {**record, "state": json.dumps(found)},
        {name: Outgoing.of(values) for name, values in arrays.items()},
    )
    os.close(handle)


@fuzzed
@given(data=st.data())
def test_values_of_a_state_with_a_right_digest(tmp_path: Path, data: st.DataObject) -> None:
    """A crafted file: its digest is right, and its values are anything."""
    history = History((), Folded().with_entries([TaughtSession("0" * 32, 1, ("cup",), (3,))]))
    record = Record(meta_of(1).with_history(history)).to_json()
    found = {**json.loads(record["state"]), "device": "kitchen", "bundle_version": "1"}
    name = data.draw(st.sampled_from(sorted(found)))
    if isinstance(found[name], dict) and data.draw(st.booleans()):
        inner = data.draw(st.sampled_from(sorted(found[name])))
        found[name] = {**found[name], inner: data.draw(values)}
    else:
        found[name] = data.draw(values)
    arrays = {
        **history.arrays,
        "head/cw": np.zeros((3, 2), np.float32),
        "memory/slots": np.zeros(2, np.int32),
        "memory/codes": np.zeros((2, 3), np.float32),
    }
    odd = data.draw(st.sampled_from(sorted(arrays)))
    shape = data.draw(st.lists(st.integers(0, 3), max_size=4))
    dtype = data.draw(st.sampled_from([np.float32, np.int32, np.uint8, np.int64, np.uint32]))
    arrays[odd] = np.full(shape, data.draw(st.sampled_from([-1, 0, 7])) % 256, dtype)
    path = tmp_path / "state-00000000.safetensors"
    write_crafted(path, record, found, arrays)
    with within_limits():
        read = read_opened(open_state(path))
        read.memory.rows.all()
        history = read.history
        assert len(history.entries) == history.sessions


@fuzzed
@given(data=st.data())
def test_values_of_a_session_in_a_history(tmp_path: Path, data: st.DataObject) -> None:
    entry = {"id": "0", "session": 1, "labels": ["cup"], "patterns": [1], "time": 1, "device": "a"}
    name = data.draw(st.sampled_from([*sorted(entry), "bundle_version", "later"]))
    odd = data.draw(values) if data.draw(st.booleans()) else {**entry, name: data.draw(values)}
    record = Record(meta_of(1)).to_json()
    arrays = {
        "memory/slots": np.zeros(2, np.int32),
        "memory/codes": np.zeros((2, 3), np.float32),
    }
    path = tmp_path / "state.safetensors"
    write_crafted(path, record, {**json.loads(record["state"]), "history": [odd]}, arrays)
    with within_limits():
        found = read_state_file(path)
        history = found.history
        assert len(history.ids) == history.sessions == 1
        assert Folded().with_entries(history.recent).entries == history.entries


@fuzzed
@given(header=st.dictionaries(st.text(max_size=8) | st.just(METADATA), values, max_size=3))
def test_headers_of_a_file_of_rows(header: dict[str, Any]) -> None:
    text = json.dumps(header).encode()
    content = len(text).to_bytes(8, "little") + text + bytes(64)
    with within_limits():
        file = TensorFile(BytesSource(content, "rows"))
        file.check()


@pytest.mark.parametrize("count", [1 << 20, 1 << 22])
def test_a_header_of_many_lists_stays_within_limits(count: int) -> None:
    text = b'{"a":[' + b"[]," * count + b"[]]}"
    with contextlib.suppress(LrtfliteError):
        TensorFile(BytesSource(len(text).to_bytes(8, "little") + text + bytes(64), "rows"))


@fuzzed
@given(changes=edits)
def test_bytes_of_golden_vectors(
    demo: Path, tmp_path: Path, changes: list[tuple[float, str, bytes]]
) -> None:
    path = tmp_path / "golden.npz"
    path.write_bytes(edited((demo / "golden.npz").read_bytes(), changes))
    with within_limits():
        read_golden(path)


@fuzzed
@given(changes=edits)
@pytest.mark.parametrize("read", [read_ops, read_signatures])
def test_bytes_of_a_model(
    demo: Path,
    tmp_path: Path,
    read: Callable[[Path], object],
    changes: list[tuple[float, str, bytes]],
) -> None:
    path = tmp_path / "head.tflite"
    path.write_bytes(edited((demo / "head.tflite").read_bytes(), changes))
    with within_limits():
        read(path)


@fuzzed
@given(changes=edits)
def test_bytes_of_an_initial_state(tmp_path: Path, changes: list[tuple[float, str, bytes]]) -> None:
    path = tmp_path / "initial-state.safetensors"
    write_state(path, state(1))
    path.write_bytes(edited(path.read_bytes(), changes))
    with within_limits():
        read_state_file(path)


def encoded_pictures() -> list[bytes]:
    """Return a small picture in every format that Pillow writes and reads, in several modes."""
    Image.init()
    noise = np.random.default_rng(0).integers(0, 256, (24, 32, 3), dtype=np.uint8)
    found = []
    for name in sorted({*Image.OPEN} & {*Image.SAVE}):
        for mode in ("1", "L", "P", "RGB", "RGBA", "CMYK", "I;16"):
            picture = Image.fromarray(noise).convert("L" if mode.startswith("I") else mode)
            buffer = io.BytesIO()
            # Each format takes some of the modes.
            with contextlib.suppress(OSError, ValueError, KeyError), warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                picture.convert(mode).save(buffer, format=name)
                found.append(buffer.getvalue())
    return found


PICTURES = encoded_pictures()
# Pixels, so that no edited header asks for more RAM than `MAX_RAM`.
MAX_PIXELS = 1 << 20


@pytest.mark.filterwarnings("ignore")  # Pillow warns about what it goes on to read
@fuzzed
@given(changes=edits, which=st.integers(0, len(PICTURES) - 1))
@pytest.mark.parametrize("read", [partial(read_image, size=8), count_frames])
def test_bytes_of_a_picture(
    tmp_path: Path,
    read: Callable[[Path], object],
    changes: list[tuple[float, str, bytes]],
    which: int,
) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(edited(PICTURES[which], changes))
    with mock.patch.object(image_file, "MAX_PIXELS", MAX_PIXELS), within_limits():
        read(path)


@pytest.mark.filterwarnings("ignore")
@fuzzed
@given(changes=edits)
def test_bytes_of_a_project(tmp_path: Path, changes: list[tuple[float, str, bytes]]) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", "{}")
        for number, content in enumerate(PICTURES[:4]):
            archive.writestr(f"mug-!-{number}.png", content)
    path = tmp_path / "project.tm"
    path.write_bytes(edited(buffer.getvalue(), changes))
    with mock.patch.object(image_file, "MAX_PIXELS", MAX_PIXELS), within_limits():
        for clip in open_source(f"tm:{path}", size=8, skip_unreadable=True).train_clips():
            list(clip.read())


def test_a_sparse_manifest_of_two_gigabytes(demo: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    shutil.copytree(demo, folder)
    os.truncate(folder / "manifest.json", 2 << 30)
    with within_limits():
        Bundle.open(folder)
        raise AssertionError("it was opened")
