"""MobileNetV1: the paper's names, keras.applications' numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tf_keras as keras

from lrtflite.errors import LrtfliteError, ModelError
from lrtflite.host.family import MOBILENET_V1_FAMILY
from lrtflite.host.mobilenet import ClassSlots, mobilenet_v1
from lrtflite.host.weights import load_weights
from lrtflite.networks.mobilenet_v1 import KERAS_NAMES, REPLAY_LAYERS


def randomised_keras_mobilenet(alpha: float, size: int) -> keras.Model:
    """Return keras.applications' network with random gamma and beta, and fitting moments."""
    model = keras.applications.MobileNet(
        (size, size, 3), alpha=alpha, include_top=False, pooling="avg", weights=None
    )
    rng = np.random.default_rng(size)
    for layer in model.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.gamma.assign(rng.uniform(0.5, 2.0, layer.gamma.shape))
            layer.beta.assign(rng.normal(0.5, 0.5, layer.beta.shape))
            layer.momentum = 0.0  # moments of the data, because others amplify rounding errors
    model(rng.uniform(-1, 1, (4, size, size, 3)).astype(np.float32), training=True)
    return model


@pytest.mark.parametrize(("alpha", "size"), [(1.0, 128), (0.25, 97)])
def test_outputs_match_keras_applications(tmp_path: Path, alpha: float, size: int) -> None:
    theirs = randomised_keras_mobilenet(alpha, size)
    theirs.save_weights(tmp_path / "weights.h5")
    ours = mobilenet_v1(alpha=alpha, input_size=size, classes=0)
    load_weights(ours, str(tmp_path / "weights.h5"))
    x = np.random.default_rng(5).uniform(-1, 1, (2, size, size, 3)).astype(np.float32)
    watched = ["conv1", "conv2_2/dw", "conv5_4/dw", "conv6/sep"]
    in_ours = [ours.get_layer(name).output for name in watched]
    in_theirs = [theirs.get_layer(f"{KERAS_NAMES[name]}_relu").output for name in watched]
    got = keras.Model(ours.input, [*in_ours, ours.output])(x)
    expected = keras.Model(theirs.input, [*in_theirs, theirs.output])(x)
    for name, ours_out, theirs_out in zip([*watched, "pool6"], got, expected):
        # An output that is all 0 or all 6 would prove little.
        assert 0.01 < np.mean(theirs_out) < 5.99, name
        np.testing.assert_allclose(ours_out, theirs_out, atol=1e-4, err_msg=name)


def test_names_are_the_papers() -> None:
    # Typed from the paper's Table "model_arch".
    blocks = ["2_1", "2_2", "3_1", "3_2", "4_1", "4_2"]
    blocks += ["5_1", "5_2", "5_3", "5_4", "5_5", "5_6", "6"]
    units = [f"conv{block}/{part}" for block in blocks for part in ("dw", "sep")]
    assert ("images", "conv1", *units, "pool6") == REPLAY_LAYERS
    # From the correspondence in keras.applications.
    assert KERAS_NAMES["conv2_1/dw"] == "conv_dw_1"
    assert KERAS_NAMES["conv5_1/sep"] == "conv_pw_7"
    assert KERAS_NAMES["conv5_6/dw"] == "conv_dw_12"
    assert KERAS_NAMES["conv6/sep"] == "conv_pw_13"


@pytest.mark.parametrize("suffix", ["keras", "h5"])
# Saving as HDF5 is what this tests.
@pytest.mark.filterwarnings("ignore:You are saving your model as an HDF5 file")
def test_saved_model_keeps_names_and_classes(tmp_path: Path, suffix: str) -> None:
    model = mobilenet_v1(alpha=0.25, input_size=32, classes=4, activation="relu")
    model.get_layer("fc7").set_labels(["mug", "can"], [300, 12])
    model.save(tmp_path / f"model.{suffix}")
    again = keras.models.load_model(tmp_path / f"model.{suffix}", compile=False)
    x = np.random.default_rng(0).uniform(-1, 1, (2, 32, 32, 3)).astype(np.float32)
    np.testing.assert_array_equal(again(x), model(x))
    assert [layer.name for layer in again.layers] == [layer.name for layer in model.layers]
    assert {*REPLAY_LAYERS, "fc7"} <= {layer.name for layer in again.layers}
    assert again.get_layer("fc7").labels == ("mug", "can")
    assert again.get_layer("fc7").counts == (300, 12)


def test_shapes_follow_alpha_and_size() -> None:
    model = mobilenet_v1(alpha=0.5, input_size=64, classes=3)
    assert model.get_layer("conv5_4/dw").output.shape == (None, 4, 4, 256)
    assert model.get_layer("pool6").output.shape == (None, 512)
    assert model.output.shape == (None, 3)
    assert len(MOBILENET_V1_FAMILY.weight_names) == 135


def test_free_slots_give_plain_dot_products() -> None:
    layer = ClassSlots(3)
    layer.build((None, 2))
    layer.kernel.assign([[1.0, 0.0, 2.0], [0.0, 1.0, -1.0]])
    np.testing.assert_array_equal(layer(np.array([[3.0, 5.0]], np.float32)), [[3.0, 5.0, 1.0]])


@pytest.mark.parametrize(
    "options",
    [{"alpha": 0.01}, {"alpha": -1.0}, {"input_size": 16}, {"classes": -1}, {"activation": "gelu"}],
)
def test_impossible_networks_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(LrtfliteError, match=r"^Expected"):
        mobilenet_v1(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("labels", "counts"), [(["a", "b", "c"], [1, 2, 3]), (["a", "a"], [1, 1]), (["a"], [])]
)
def test_impossible_labels_are_refused(labels: list[str], counts: list[int]) -> None:
    with pytest.raises(ModelError, match=r"^Expected"):
        ClassSlots(2, labels=labels, counts=counts)
