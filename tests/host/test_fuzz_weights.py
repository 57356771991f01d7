"""Readers of weights, checkpoints and saved networks: only LrtfliteError escapes.

`make fuzz` runs the same tests with LRTFLITE_FUZZ, the number of examples of each.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lrtflite.errors import LrtfliteError
from lrtflite.host.family import FAMILIES, MOBILENET_V1_FAMILY
from lrtflite.host.first_batch import MEMBER, read_first_batch
from lrtflite.host.mobilenet import mobilenet_v1
from lrtflite.host.model_file import load_model
from lrtflite.host.training.checkpoint import Epoch, TrainState, load_checkpoint, save_checkpoint
from lrtflite.host.weight_files import read_weights, write_weights
from lrtflite.host.weights import from_model

EXAMPLES = int(os.environ.get("LRTFLITE_FUZZ", "40"))
fuzzed = settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
edits = st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=40)), min_size=1, max_size=4)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the bytes of each kind of file, from a network of some kilobytes."""
    folder = tmp_path_factory.mktemp("whole")
    model = mobilenet_v1(alpha=1 / 32, input_size=32, classes=2)
    model.save(folder / "w.keras")
    model.save_weights(folder / "w.h5")
    write_weights(from_model(model, MOBILENET_V1_FAMILY), folder / "w.npz")
    state = TrainState(
        identity={"lr": 0.1},
        epoch=1,
        best_epoch=0,
        history=[Epoch(1, 0.5, 0.5, float("nan"), 0.5)],
        weights=[np.ones(3, np.float32)],
        best=[np.ones(3, np.float32)],
    )
    save_checkpoint(state, folder / "checkpoint.npz")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Build each network once: the builder takes half a second, and no bytes of a file."""
    family = replace(MOBILENET_V1_FAMILY, build=functools.cache(mobilenet_v1))
    monkeypatch.setitem(FAMILIES, "mobilenet_v1", family)


def edited(content: bytes, changes: list[tuple[float, bytes]]) -> bytes:
    for where, more in changes:
        place = int(where * len(content))
        content = content[:place] + more + content[place + len(more) :]
    return content


@fuzzed
@given(changes=edits)
@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("w.npz", read_weights),
        ("w.h5", read_weights),
        ("w.keras", read_weights),
        ("w.keras", load_model),
        ("checkpoint.npz", load_checkpoint),
    ],
)
@pytest.mark.usefixtures("built_once")
def test_bytes(
    files: dict[str, bytes],
    tmp_path: Path,
    name: str,
    read: Callable[[Path], Any],
    changes: list[tuple[float, bytes]],
) -> None:
    path = tmp_path / name
    path.write_bytes(edited(files[name], changes))
    with contextlib.suppress(LrtfliteError):
        read(path)


@settings(fuzzed, max_examples=EXAMPLES // 10)  # an accepted one restores a whole network
@given(data=st.data())
@pytest.mark.usefixtures("built_once")
def test_values_of_a_saved_network(
    files: dict[str, bytes], tmp_path: Path, data: st.DataObject
) -> None:
    path = tmp_path / "w.keras"
    with zipfile.ZipFile(io.BytesIO(files["w.keras"])) as old, zipfile.ZipFile(path, "w") as new:
        config = json.loads(old.read("config.json"))
        layer = data.draw(st.sampled_from(config["config"]["layers"]))
        place = data.draw(st.sampled_from([config, config["config"], layer, layer["config"]]))
        place[data.draw(st.sampled_from(sorted(place)))] = data.draw(values)
        new.writestr("config.json", json.dumps(config))
        for name in ("metadata.json", "model.weights.h5"):
            new.writestr(name, old.read(name))
    for read in (load_model, read_weights):
        with contextlib.suppress(LrtfliteError):
            read(path)


@fuzzed
@given(data=st.data())
def test_values_of_a_checkpoint(
    files: dict[str, bytes], tmp_path: Path, data: st.DataObject
) -> None:
    with np.load(io.BytesIO(files["checkpoint.npz"])) as whole:
        arrays = dict(whole)
    record = json.loads(str(arrays["record"]))
    place = data.draw(st.sampled_from([record, record["history"][0]]))
    place[data.draw(st.sampled_from(sorted(place)))] = data.draw(values)
    arrays["record"] = np.asarray(json.dumps(record))
    path = tmp_path / "checkpoint.npz"
    np.savez(path, **arrays)
    with contextlib.suppress(LrtfliteError):
        state = load_checkpoint(path)
        assert len(state.history) == state.epoch
        assert state.best_epoch < state.epoch


@fuzzed
@given(
    images=st.lists(st.integers(0, 3), max_size=5),
    slots=st.lists(st.integers(-2, 3), max_size=3),
    dtype=st.sampled_from([np.uint8, np.float32, np.int32]),
)
def test_frames_of_a_first_batch(
    tmp_path: Path, images: list[int], slots: list[int], dtype: Any
) -> None:
    buffer = io.BytesIO()
    np.savez(buffer, images=np.zeros(images, dtype), slots=np.array(slots, np.int32))
    with zipfile.ZipFile(tmp_path / "m.keras", "w") as file:
        file.writestr(MEMBER, buffer.getvalue())
    with contextlib.suppress(LrtfliteError):
        found = read_first_batch(tmp_path / "m.keras", size=2, classes=2)
        assert found is not None
        assert len(found.sample(1, np.random.default_rng(0)).slots) <= 1
