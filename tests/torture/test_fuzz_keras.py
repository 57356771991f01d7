"""Readers of Keras files and `.npz` files: only LrtfliteError escapes, within limits of RAM.

`make fuzz` runs the same tests with LRTFLITE_FUZZ, the number of examples of each.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import h5py  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_fuzz import edited, edits, fuzzed, values, within_limits

from lrtflite.contract.golden import read_golden
from lrtflite.errors import ModelError
from lrtflite.files.keras import is_of_this_project, read_keras_file

LAYERS = [
    {"class_name": "InputLayer", "config": {"name": "images"}},
    {"class_name": "Conv2D", "config": {"name": "conv", "filters": 2}, "inbound_nodes": [[]]},
    {"class_name": "lrtflite>ClassSlots", "config": {"name": "fc7", "classes": 2}},
]
CONFIG: dict[str, Any] = {"class_name": "Functional", "config": {"name": "m", "layers": LAYERS}}


def hdf5(*, whole: bool) -> bytes:
    """Return a small `.h5` file as Keras writes it: a model, or the weights of an archive."""
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        if whole:
            file.attrs["model_config"] = json.dumps(CONFIG)
            file.attrs["keras_version"] = "2.21.0"
            file["model_weights/conv/conv/kernel:0"] = np.ones((3, 3, 3, 2), np.float32)
            file["model_weights/fc7/fc7/kernel:0"] = np.ones((2, 2), np.float32)
        else:
            file["layers/conv2d/vars/0"] = np.ones((3, 3, 3, 2), np.float32)
            file["layers/class_slots/vars/0"] = np.ones((2, 2), np.float32)
            file["layers/conv2d/vars"].attrs["name"] = "conv"
    return buffer.getvalue()


def archive(config: Any = CONFIG) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("config.json", json.dumps(config))
        file.writestr("metadata.json", json.dumps({"keras_version": "3.1"}))
        file.writestr("model.weights.h5", hdf5(whole=False))
    return buffer.getvalue()


FILES = {"own.keras": archive(), "own.h5": hdf5(whole=True)}


def read(path: Path) -> None:
    with within_limits():
        file = read_keras_file(path)
        kinds = [("Conv2D", "conv"), ("ClassSlots", "fc7")]
        for each in file.of_layers("", kinds):
            assert all(array.dtype == np.float32 for array in file.weights(each))
    with within_limits():
        is_of_this_project(path)


@pytest.mark.parametrize("name", FILES)
def test_the_files_are_whole(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(FILES[name])
    file = read_keras_file(path)
    (kernel,), (slots,) = map(
        file.weights, file.of_layers("", [("Conv2D", "conv"), ("ClassSlots", "fc7")])
    )
    assert (kernel.shape, slots.shape) == ((3, 3, 3, 2), (2, 2))
    assert is_of_this_project(path)


@fuzzed
@given(changes=edits)
@pytest.mark.parametrize("name", FILES)
def test_bytes_of_a_keras_file(
    tmp_path: Path, name: str, changes: list[tuple[float, str, bytes]]
) -> None:
    path = tmp_path / name
    path.write_bytes(edited(FILES[name], changes))
    read(path)


@fuzzed
@given(changes=edits)
def test_bytes_of_the_weights_in_an_archive(
    tmp_path: Path, changes: list[tuple[float, str, bytes]]
) -> None:
    path = tmp_path / "own.keras"
    with zipfile.ZipFile(path, "w") as file:  # with right checksums
        file.writestr("config.json", json.dumps(CONFIG))
        file.writestr("metadata.json", "{}")
        file.writestr("model.weights.h5", edited(hdf5(whole=False), changes))
    read(path)


@fuzzed
@given(data=st.data())
def test_values_of_a_configuration(tmp_path: Path, data: st.DataObject) -> None:
    config = json.loads(json.dumps(CONFIG))
    place = data.draw(st.sampled_from([config, config["config"], *config["config"]["layers"]]))
    place[data.draw(st.sampled_from(sorted(place)))] = data.draw(values)
    path = tmp_path / "own.keras"
    path.write_bytes(archive(config))
    read(path)


@fuzzed
@given(
    header=st.text(max_size=80)
    | st.fixed_dictionaries(
        {
            "descr": st.sampled_from(
                ["<f4", "|O", "|b1", "<U3", ">i8", "|V4", "f0", [("a", "<f4")]]
            ),
            "fortran_order": st.booleans() | st.none(),
            "shape": st.lists(st.integers(-1, 1 << 40), max_size=3).map(tuple),
        }
    ).map(str),
    rest=st.binary(max_size=64),
)
def test_headers_of_an_array(tmp_path: Path, header: str, rest: bytes) -> None:
    text = header.encode()
    raw = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + rest
    path = tmp_path / "golden.npz"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a.npy", raw)
    with within_limits():
        assert all(isinstance(array, np.ndarray) for array in read_golden(path).values())


def test_a_list_in_place_of_a_text_is_refused(tmp_path: Path) -> None:
    """A list can hold one long text any number of times, so none is read."""
    with h5py.File(tmp_path / "own.h5", "w") as file:
        file.attrs["model_config"] = [json.dumps(CONFIG)] * 3
    with pytest.raises(ModelError, match="an invalid attribute model_config"):
        read_keras_file(tmp_path / "own.h5")
