"""Teachable Machine's Keras model: its features stay, its own dense layers do not."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lrtflite.bundle.bundle import Bundle
from lrtflite.errors import ModelError
from lrtflite.files.keras import is_of_this_project
from lrtflite_converters.features.sample_frames import wave_frames
from lrtflite_converters.keras_models.network import read_network
from lrtflite_converters.request.scaling import read_scaling
from lrtflite_converters.request.source import read_labels
from teachable_models import ALPHA, POOLED, SIZE, exported, save

FRAMES = wave_frames(3, SIZE, np.random.default_rng(1))
# Parameters that a summary of a real exported model of three classes shows.
PARAMETERS = 538_608

pytestmark = pytest.mark.filterwarnings("ignore:You are saving your model as an HDF5 file")


@pytest.fixture(scope="module")
def model() -> Any:
    return exported()


@pytest.fixture(scope="module")
def file(model: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(model, tmp_path_factory.mktemp("exported"))


def expected_features(model: Any) -> np.ndarray:
    base, _ = model.layers
    return np.asarray(base(FRAMES.astype(np.float32) / 127.5 - 1, training=False))


def test_the_model_of_the_test_is_as_large_as_a_real_one(model: Any) -> None:
    assert model.count_params() == PARAMETERS
    assert ALPHA == 0.35


def test_features_are_those_of_the_file(model: Any, file: Path) -> None:
    network = read_network(file)
    found = network.architecture
    assert found.pooled == POOLED
    assert found.dropped == ("dense_Dense1", "dense_Dense2")
    assert (found.made_by, found.scale) == ("Teachable Machine", "-1..1")
    expected = expected_features(model)
    features = network.model(network.scale(FRAMES)).numpy()
    assert features.shape == (3, 1280)
    np.testing.assert_allclose(features, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_the_exported_zip_is_read_too(file: Path, tmp_path: Path) -> None:
    path = tmp_path / "converted_keras.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for each in (file, file.parent / "labels.txt"):
            archive.write(each, each.name)
    assert not is_of_this_project(path)
    ours, theirs = read_network(path), read_network(file)
    frames = ours.scale(FRAMES[:1])
    np.testing.assert_array_equal(ours.model(frames), theirs.model(frames))


def test_a_scaling_can_be_given(file: Path) -> None:
    network = read_network(file, read_scaling("0..1"))
    assert network.architecture.scale is None
    np.testing.assert_allclose(network.scale(FRAMES), FRAMES / np.float32(255), atol=1e-6)


def test_its_dense_layers_are_no_replay_layers(file: Path) -> None:
    with pytest.raises(ModelError, match=f"below the classifier, got 'dense_Dense1'; .*{POOLED}"):
        read_network(file).architecture.check_layer("dense_Dense1")


def test_another_model_of_two_models_keeps_its_layers(tmp_path: Path) -> None:
    path = save(exported(hidden="tanh"), tmp_path)
    with pytest.raises(ModelError, match="or --scale, got neither"):
        read_network(path)
    found = read_network(path, read_scaling("-1..1")).architecture
    assert found.dropped == ("dense_Dense2",)
    assert not found.made_by


def test_numbered_labels(file: Path, tmp_path: Path) -> None:
    assert read_labels(str(file.parent / "labels.txt")) == ("red mug", "cup", "none")
    (tmp_path / "plain.txt").write_text("0 mug\n2 cup\n")
    assert read_labels(str(tmp_path / "plain.txt")) == ("0 mug", "2 cup")


@pytest.mark.slow
def test_convert_makes_a_bundle_and_says_what_was_left_out(file: Path, tmp_path: Path) -> None:
    out, labels = tmp_path / "bundle", str(file.parent / "labels.txt")
    command = [sys.executable, "-m", "lrtflite_cli.main", "convert", "--model", str(file)]
    words = ["--strategy", "lda", "--labels", labels, "--out", str(out)]
    told = subprocess.run([*command, *words], check=True, capture_output=True, text=True).stderr
    assert (
        "A model of Teachable Machine, and its frames are scaled to -1..1. Its classifier "
        "dense_Dense1 and dense_Dense2 was left out, so it has no classes until it is taught: "
        f"lrtflite teach {out} --dataset tm:PROJECT.tm\n"
    ) in told
    manifest = Bundle.open(out).manifest
    assert manifest.labels[:4] == ("red mug", "cup", "none", None)
    assert (manifest.input_size, manifest.replay_layer) == (SIZE, POOLED)
