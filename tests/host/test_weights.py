"""Weights from files, from the package and from Keras: the same outputs, or a clear error."""

from __future__ import annotations

import builtins
import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tf_keras as keras

from lrtflite.errors import ModelError
from lrtflite.host import weights as weights_module
from lrtflite.host.family import MOBILENET_V1_FAMILY
from lrtflite.host.mobilenet import mobilenet_v1
from lrtflite.host.weight_files import read_weights
from lrtflite.host.weights import load_weights, mobilenet_with_weights, write_npz

FRAMES = np.random.default_rng(0).uniform(-1, 1, (2, 32, 32, 3)).astype(np.float32)


@pytest.fixture(scope="module")
def trained() -> keras.Model:
    """Return a small network with moved moments, so that no weight has its initial value."""
    model = mobilenet_v1(alpha=0.25, input_size=32, classes=0)
    rng = np.random.default_rng(1)
    for weight in model.weights:
        if weight.name.endswith(("moving_variance:0", "gamma:0")):
            weight.assign(10 ** rng.uniform(-3, 0.3, weight.shape))
        elif weight.name.endswith(("moving_mean:0", "beta:0")):
            weight.assign(rng.normal(0, 0.3, weight.shape))
    return model


@pytest.fixture(scope="module")
def empty() -> keras.Model:
    return mobilenet_v1(alpha=0.25, input_size=32, classes=0)


@pytest.fixture
def blank(empty: keras.Model) -> keras.Model:
    """Return the network of `trained` with new weights; building one takes a second."""
    for weight in empty.weights:
        weight.assign(np.ones(weight.shape))
    return empty


def test_npz_round_trip_is_exact(tmp_path: Path, trained: keras.Model, blank: keras.Model) -> None:
    write_npz(trained, tmp_path / "weights.npz")
    with np.load(tmp_path / "weights.npz") as file:
        assert {"conv1/kernel", "conv_dw_3/depthwise_kernel", "conv_pw_13_bn/beta"} <= {*file.files}
        np.testing.assert_array_equal(
            file["conv_dw_10_bn/moving_mean"], trained.get_layer("conv5_4/dw/brn").moving_mean
        )
    origin = load_weights(blank, str(tmp_path / "weights.npz"))
    assert origin.startswith("weights.npz (sha256 ")
    np.testing.assert_array_equal(blank(FRAMES), trained(FRAMES))


@pytest.mark.parametrize("name", ["whole.keras", "whole.h5", "only.weights.h5"])
@pytest.mark.filterwarnings("ignore:You are saving your model as an HDF5 file")  # it is the point
def test_files_that_keras_wrote_are_read(
    tmp_path: Path, trained: keras.Model, blank: keras.Model, name: str
) -> None:
    save = trained.save if name.startswith("whole") else trained.save_weights
    if name == "only.weights.h5":  # Keras' older layout, in which its published weights are
        trained.save_weights(tmp_path / "only.h5")
        (tmp_path / "only.h5").rename(tmp_path / name)
    else:
        save(tmp_path / name)
    load_weights(blank, str(tmp_path / name))
    np.testing.assert_array_equal(blank(FRAMES), trained(FRAMES))


def count_opens(monkeypatch: pytest.MonkeyPatch, path: Path) -> list[str]:
    """Return a list that gets an entry whenever Python opens `path`."""
    opened: list[str] = []
    really_open = io.open

    def counting(file: Any, *args: Any, **options: Any) -> Any:
        if file == path or str(file) == str(path):
            opened.append(str(file))
        return really_open(file, *args, **options)

    for module in (io, builtins):
        monkeypatch.setattr(module, "open", counting)
    return opened


@pytest.mark.parametrize("name", ["w.npz", "w.h5"])
@pytest.mark.parametrize("load", ["network", "load_weights"])
@pytest.mark.filterwarnings("ignore:You are saving your model as an HDF5 file")
def test_a_file_is_read_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    trained: keras.Model,
    blank: keras.Model,
    name: str,
    load: str,
) -> None:
    path = tmp_path / name
    if name == "w.npz":
        write_npz(trained, path)
    else:
        trained.save_weights(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    opened = count_opens(monkeypatch, path)
    if load == "network":
        model, origin = mobilenet_with_weights(weights=str(path), input_size=32, classes=0)
    else:
        model, origin = blank, load_weights(blank, str(path))
    assert len(opened) == 1
    assert origin == f"{name} (sha256 {digest})"
    np.testing.assert_array_equal(model(FRAMES), trained(FRAMES))


def test_a_file_that_cannot_be_opened_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "w.npz"
    path.touch()

    def refused(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(
        ModelError, match=r"cannot be read \(.*Permission denied\); download or save it again"
    ):
        read_weights(path)


def test_network_takes_width_and_activation_from_the_file(tmp_path: Path) -> None:
    write_npz(
        mobilenet_v1(alpha=0.5, input_size=32, classes=0, activation="relu"), tmp_path / "w.npz"
    )
    model, _ = mobilenet_with_weights(weights=str(tmp_path / "w.npz"), input_size=48, classes=7)
    assert model.input_shape == (None, 48, 48, 3)
    assert model.output_shape == (None, 7)
    assert model.get_layer("pool6").output.shape[-1] == 512
    assert model.get_layer("conv1").max_value is None


def test_reference_weights_match_keras_applications(shared: Path) -> None:
    path = shared / "weights" / "mobilenet_v1_1.0_imagenet_notop.npz"
    theirs = keras.applications.MobileNet((128, 128, 3), include_top=False, weights=None)
    with np.load(path) as file:
        for weight in theirs.weights:
            weight.assign(file[weight.name.split(":")[0]])
    ours, _ = mobilenet_with_weights(weights=str(path), classes=0)
    x = np.random.default_rng(2).uniform(-1, 1, (1, 128, 128, 3)).astype(np.float32)
    np.testing.assert_allclose(ours(x), np.mean(theirs(x), axis=(1, 2)), atol=1e-4)


def test_imagenet_uses_the_nearest_published_size(
    monkeypatch: pytest.MonkeyPatch, blank: keras.Model, trained: keras.Model
) -> None:
    asked = []

    def published(**options: object) -> keras.Model:
        asked.append((options["input_shape"], options["alpha"], options["weights"]))
        return trained

    monkeypatch.setattr(keras.applications, "MobileNet", published)
    assert "alpha 0.25 at 128" in load_weights(blank, "imagenet")
    load_weights(mobilenet_v1(alpha=0.25, input_size=180, classes=0), "imagenet")
    assert asked == [((128, 128, 3), 0.25, "imagenet"), ((192, 192, 3), 0.25, "imagenet")]


def test_imagenet_offline_is_one_line(monkeypatch: pytest.MonkeyPatch, blank: keras.Model) -> None:
    def offline(*_: object, **__: object) -> None:
        raise Exception("URL fetch failure on https://...: None -- no route\nsecond line")

    monkeypatch.setattr(keras.applications, "MobileNet", offline)
    with pytest.raises(ModelError, match="internet") as caught:
        load_weights(blank, "imagenet")
    assert "\n" not in str(caught.value)


def test_imagenet_of_another_width_is_refused() -> None:
    with pytest.raises(ModelError, match=r"0\.25, 0\.5, 0\.75, 1\.0.*got 0\.375"):
        load_weights(mobilenet_v1(alpha=0.375, input_size=32, classes=0), "imagenet")


def test_demo_weights_load_or_say_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, trained: keras.Model
) -> None:
    monkeypatch.setattr(weights_module, "DEMO_FILE", tmp_path / "demo_backbone.npz")
    with pytest.raises(ModelError, match="demo_backbone"):
        mobilenet_with_weights(weights="demo", input_size=32, classes=0)
    write_npz(trained, tmp_path / "demo_backbone.npz")
    model, origin = mobilenet_with_weights(weights="demo", input_size=32, classes=0)
    assert origin.startswith("demo backbone (sha256 ")
    np.testing.assert_array_equal(model(FRAMES), trained(FRAMES))


def test_packaged_demo_weights_are_there() -> None:
    model, origin = mobilenet_with_weights(weights="demo", classes=0)
    assert origin.startswith("demo backbone (sha256 ")
    assert model.output_shape == (None, 256)  # alpha 0.25


def damaged(tmp_path: Path, trained: keras.Model, how: str) -> Path:
    path = tmp_path / "weights.npz"
    write_npz(trained, path)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    if how == "truncated":
        path.write_bytes(path.read_bytes()[:-10_000])
    elif how == "text":
        path.write_text("not weights")
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "missing name":
        del arrays["conv_dw_3/depthwise_kernel"]
    elif how == "NaN":
        arrays["conv_pw_4/kernel"][0, 0, 0, 0] = np.nan
    elif how == "negative variance":
        arrays["conv1_bn/moving_variance"][0] = -1
    elif how == "wrong shape":
        arrays["conv_dw_3/depthwise_kernel"] = arrays["conv_dw_3/depthwise_kernel"][..., 0]
    elif how == "pickle":
        arrays["conv1/kernel"] = np.array([{"a": 1}], dtype=object)
    if how not in ("truncated", "text", "empty"):
        np.savez(path, **arrays)
    return path


@pytest.mark.parametrize(
    "how",
    [
        "truncated",
        "text",
        "empty",
        "missing name",
        "NaN",
        "negative variance",
        "wrong shape",
        "pickle",
    ],
)
def test_unsuitable_files_change_nothing(
    tmp_path: Path, trained: keras.Model, blank: keras.Model, how: str
) -> None:
    before = blank(FRAMES).numpy()
    with pytest.raises(ModelError, match=r"^Expected") as caught:
        load_weights(blank, str(damaged(tmp_path, trained, how)))
    assert "\n" not in str(caught.value)
    np.testing.assert_array_equal(blank(FRAMES), before)


@pytest.mark.parametrize("name", ["weights.bin", "absent.npz", "absent.h5", "absent.keras"])
def test_files_of_no_use_are_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelError, match=name):
        read_weights(tmp_path / name)


@pytest.mark.parametrize("suffix", ["h5", "keras"])
def test_damaged_keras_files_are_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"weights.{suffix}"
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    with pytest.raises(ModelError, match=r"^Expected") as caught:
        read_weights(path)
    assert "\n" not in str(caught.value)


def test_another_network_is_refused(tmp_path: Path) -> None:
    inputs = keras.Input((4,))
    keras.Model(inputs, keras.layers.Dense(2)(inputs)).save(tmp_path / "dense.keras")
    with pytest.raises(
        ModelError, match=f"{len(MOBILENET_V1_FAMILY.weight_names)} arrays.*conv1/kernel"
    ):
        read_weights(tmp_path / "dense.keras")


def test_other_width_and_activation_say_which_option_to_use(
    tmp_path: Path, trained: keras.Model
) -> None:
    write_npz(trained, tmp_path / "w.npz")
    with pytest.raises(ModelError, match=r"use --alpha 0\.25"):
        mobilenet_with_weights(weights=str(tmp_path / "w.npz"), alpha=0.5, input_size=32)
    with pytest.raises(ModelError, match="use --activation relu6"):
        mobilenet_with_weights(weights=str(tmp_path / "w.npz"), activation="relu", input_size=32)


def foreign(activation: str) -> keras.Model:
    """Return a MobileNet of keras.applications with another activation, and random moments."""
    theirs = keras.applications.MobileNet(
        (32, 32, 3), include_top=False, weights=None, alpha=0.25, pooling="avg"
    )

    def with_activation(layer: Any) -> Any:
        if not isinstance(layer, keras.layers.ReLU):
            return layer.__class__.from_config(layer.get_config())
        if activation == "Activation":
            return keras.layers.Activation("relu", name=layer.name)
        return keras.layers.ReLU(6.0 if activation == "relu6" else None, name=layer.name)

    model = keras.models.clone_model(theirs, clone_function=with_activation)
    rng = np.random.default_rng(3)
    for layer in model.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.gamma.assign(rng.uniform(1, 4, layer.gamma.shape))
            layer.moving_variance.assign(rng.uniform(0.1, 0.5, layer.gamma.shape))
    return model


@pytest.mark.parametrize("name", ["w.keras", "w.h5"])
@pytest.mark.parametrize("activation", ["relu", "Activation", "relu6"])
@pytest.mark.filterwarnings("ignore:You are saving your model as an HDF5 file")
def test_another_programs_model_keeps_its_activation(
    tmp_path: Path, activation: str, name: str
) -> None:
    theirs = foreign(activation)
    theirs.save(tmp_path / name)
    model, _ = mobilenet_with_weights(weights=str(tmp_path / name), input_size=32, classes=0)
    expected = theirs(FRAMES).numpy()
    assert (expected.max() > 6) == (activation != "relu6")
    np.testing.assert_allclose(model(FRAMES), expected, rtol=1e-3, atol=1e-4 * expected.max())
    other = "relu" if activation == "relu6" else "relu6"
    with pytest.raises(ModelError, match=f"Expected weights trained with {other}, got relu"):
        mobilenet_with_weights(weights=str(tmp_path / name), activation=other, input_size=32)


def test_arrays_alone_take_the_given_activation_or_relu6(
    tmp_path: Path, trained: keras.Model
) -> None:
    """The package's own files name their activation; those of other programs do not."""
    write_npz(trained, tmp_path / "own.npz")
    with np.load(tmp_path / "own.npz") as file:
        arrays = {name: file[name] for name in file.files if name != "activation"}
    np.savez(tmp_path / "theirs.npz", **arrays)
    trained.save_weights(tmp_path / "theirs.h5")
    for name in ("theirs.npz", "theirs.h5"):
        for given, limit in ((None, 6.0), ("relu", None), ("relu6", 6.0)):
            model, _ = mobilenet_with_weights(
                weights=str(tmp_path / name), input_size=32, classes=0, activation=given
            )
            assert model.get_layer("conv6/sep").max_value == limit
