"""Model files: damaged ones are refused, and none is left half-written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tf_keras as keras

from lrtflite.errors import ModelError
from lrtflite.host.mobilenet import mobilenet_v1
from lrtflite.host.model_file import load_model, save_model


@pytest.fixture(scope="module")
def model() -> keras.Model:
    return mobilenet_v1(alpha=0.125, input_size=32, classes=2)


def test_saved_model_comes_back(tmp_path: Path, model: keras.Model) -> None:
    save_model(model, tmp_path / "new" / "model.keras")
    again = load_model(tmp_path / "new" / "model.keras")
    for one, other in zip(again.get_weights(), model.get_weights()):
        np.testing.assert_array_equal(one, other)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["model.keras"]


@pytest.mark.parametrize("cut", [0, 10, -200])
def test_damaged_models_are_refused(tmp_path: Path, model: keras.Model, cut: int) -> None:
    path = tmp_path / "model.keras"
    save_model(model, path)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ModelError, match=r"^Expected") as caught:
        load_model(path)
    assert "\n" not in str(caught.value)


def test_absent_models_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"got .*, which is a folder"):
        load_model(tmp_path)
    with pytest.raises(ModelError, match=r"absent\.keras, which does not exist"):
        load_model(tmp_path / "absent.keras")


def test_other_names_are_refused(tmp_path: Path, model: keras.Model) -> None:
    with pytest.raises(ModelError, match=r"\.keras"):
        save_model(model, tmp_path / "model.bin")


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, model: keras.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.keras"
    path.write_text("old")

    def fill_the_disk(_: keras.Model, temporary: Path) -> None:
        temporary.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(keras.Model, "save", fill_the_disk)
    with pytest.raises(ModelError, match=r"Expected to write .*No space left on device; make room"):
        save_model(model, path)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.keras"]


def test_a_place_that_is_no_folder_is_refused(tmp_path: Path, model: keras.Model) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="Expected to write"):
        save_model(model, tmp_path / "file" / "model.keras")
