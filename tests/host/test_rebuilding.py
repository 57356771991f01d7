"""Networks that `lrtflite train` saved: rebuilt as Keras would load them, or refused."""

from __future__ import annotations

import importlib
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py  # type: ignore[import-untyped]
import numpy as np
import pytest
import tf_keras

from hostile_files import changed_archive
from lrtflite.errors import ModelError
from lrtflite.host.batch_renorm import BatchRenorm
from lrtflite.host.mobilenet import mobilenet_v1
from lrtflite.host.mobilenet_v2 import mobilenet_v2
from lrtflite.host.model_file import load_model
from lrtflite.host.weight_files import read_weights


def randomised(model: Any) -> Any:
    """Return a network whose weights all have values of their own."""
    rng = np.random.default_rng(7)
    for layer in model.layers:
        values = [np.asarray(value) for value in layer.get_weights()]
        if isinstance(layer, BatchRenorm):
            arrays = [rng.uniform(0.5, 1.5, value.shape) for value in values[:4]]
            layer.set_weights([*arrays, np.float32(0.9), np.float32(1.5), np.float32(0.25)])
        elif values:
            layer.set_weights([rng.normal(0.5, 0.2, value.shape) ** 2 for value in values])
    return model


@pytest.mark.parametrize(
    ("build", "options", "suffix"),
    [
        (mobilenet_v1, {"alpha": 0.3, "input_size": 33, "activation": "relu"}, "h5"),
        (mobilenet_v2, {"alpha": 0.123, "input_size": 35}, "keras"),
    ],
)
@pytest.mark.filterwarnings("ignore:You are saving your model as an HDF5 file")
def test_a_network_is_what_keras_loads(
    tmp_path: Path, build: Callable[..., Any], options: dict[str, Any], suffix: str
) -> None:
    model = randomised(build(classes=5, **options))
    last = model.layers[-1]
    last.set_labels(["mug", "tasse à café"], [300, 12])
    norm = next(layer for layer in model.layers if isinstance(layer, BatchRenorm))
    norm.adapt_moments = True
    norm.trainable = False
    path = tmp_path / f"model.{suffix}"
    model.save(path)
    expected = tf_keras.models.load_model(path, compile=False)
    found = load_model(path)
    assert found.get_config() == expected.get_config() == model.get_config()
    size = options["input_size"]
    frames = np.random.default_rng(0).uniform(-1, 1, (2, size, size, 3)).astype(np.float32)
    np.testing.assert_array_equal(found(frames), expected(frames))
    for one, other in zip(found.weights, expected.weights):
        np.testing.assert_array_equal(one, other, err_msg=other.name)


@pytest.mark.parametrize("name", ["whole.keras", "whole.h5"])
@pytest.mark.parametrize("version", ["tf_keras", "keras"])
@pytest.mark.filterwarnings("ignore:You are saving your model as an HDF5 file")
def test_models_of_keras_applications_give_their_weights(
    tmp_path: Path, version: str, name: str
) -> None:
    keras = importlib.import_module(version)
    model = randomised(keras.applications.MobileNet((32, 32, 3), alpha=0.25, weights=None))
    model.save(tmp_path / name)
    found = read_weights(tmp_path / name)
    assert (found.epsilon, found.activation) == (1e-3, "relu6")
    checked = 0
    for layer in model.layers:
        for weight in layer.weights:
            part = weight.name.split("/")[-1].split(":")[0]
            part = "depthwise_kernel" if "Depthwise" in type(layer).__name__ else part
            if (array := found.arrays.get(f"{layer.name}/{part}")) is not None:
                np.testing.assert_array_equal(array, np.asarray(weight))
                checked += 1
    assert checked == len(found.arrays) == 27 * 5


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rebuilt") / "model.keras"
    model = mobilenet_v1(alpha=0.125, input_size=32, classes=3)
    model.layers[-1].set_labels(["cup"], [3])
    model.save(path)
    return path


def value(number: int, **values: Any) -> Callable[[Any], None]:
    return lambda config: config["config"]["layers"][number]["config"].update(values)


def entry(number: int, **values: Any) -> Callable[[Any], None]:
    return lambda config: config["config"]["layers"][number].update(values)


def swap(config: Any) -> None:
    layers = config["config"]["layers"]
    layers[2], layers[5] = layers[5], layers[2]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda config: config["config"].update(name="resnet"), "a network 'resnet'"),
        (lambda config: config["config"].update(name=["mobilenet_v1"]), "a network"),
        (lambda config: config["config"].update(layers=[]), "list index"),
        (lambda config: config["config"]["layers"].pop(3), "layers, not|weights of|no "),
        (swap, r"conv2_1/dw/brn \(BatchRenorm\), not conv1/brn"),
        (value(1, strides=[1, 1]), r"strides \[1, 1\] in conv1/conv"),
        (value(1, activation="relu"), "activation 'relu' in conv1/conv"),
        (value(2, epsilon=1e-3), "epsilon 0.001 in conv1/brn"),
        (value(3, max_value=None), "max_value None in conv1"),
        (value(0, batch_input_shape=[None, 32, 64, 3]), "an input of"),
        (value(0, batch_input_shape=[None, "32", "32", 3]), "an input of"),
        (value(-1, classes=4), "4 classes without their weights"),
        (value(-1, classes=3.0), "a number 3.0"),
        (value(-1, labels=[["cup"]]), "labels that are not texts"),
        (value(-1, counts=[-3]), "a number -3"),
        (entry(3, class_name="Lambda"), r"conv1 \(Lambda\), not conv1"),
        (entry(3, inbound_nodes=[[["images", 0, 0, {}]]]), "other inputs of conv1"),
        (entry(3, inbound_nodes=7), "not iterable"),
    ],
)
def test_other_networks_are_refused(
    file: Path, tmp_path: Path, change: Callable[[Any], None], why: str
) -> None:
    changed_archive(file, tmp_path / "model.keras", change)
    with pytest.raises(ModelError, match=why) as caught:
        load_model(tmp_path / "model.keras")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (value(0, batch_input_shape=[None, 1 << 20, 1 << 20, 3]), "an input size from 32 to"),
        (value(-1, labels=["cup", "cup"], counts=[1, 1]), "distinct labels"),
        (value(-1, labels=["cup"] * 4), "at most 3 labels"),
    ],
)
def test_values_out_of_range_are_refused(
    file: Path, tmp_path: Path, change: Callable[[Any], None], why: str
) -> None:
    changed_archive(file, tmp_path / "model.keras", change)
    with pytest.raises(ModelError, match=why):
        load_model(tmp_path / "model.keras")


@pytest.mark.parametrize(
    ("path", "number", "why"),
    [
        ("layers/conv2d/vars/0", np.nan, "NaN or infinity in conv1/conv"),
        ("layers/batch_renorm/vars/5", 0.5, "r_max of at least 1"),
    ],
)
def test_weights_that_cannot_be_are_refused(
    file: Path, tmp_path: Path, path: str, number: float, why: str
) -> None:
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(tmp_path / "model.keras", "w") as new:
        for name in old.namelist():
            content = io.BytesIO(old.read(name))
            if name.endswith(".h5"):
                with h5py.File(content, "a") as weights:
                    weights[path][...] = number
            new.writestr(name, content.getvalue())
    with pytest.raises(ModelError, match=why):
        load_model(tmp_path / "model.keras")
