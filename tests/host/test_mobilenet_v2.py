"""MobileNetV2: keras.applications' numbers and names, and a table worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tf_keras as keras
from click.testing import CliRunner

from lrtflite.errors import InputError, ModelError
from lrtflite.host.cost import LayerCost, network_cost
from lrtflite.host.family import MOBILENET_V2_FAMILY
from lrtflite.host.mobilenet_v2 import mobilenet_v2
from lrtflite.host.weight_files import from_model
from lrtflite.host.weights import load_weights, mobilenet_with_weights, write_npz
from lrtflite.networks.mobilenet_v2 import MOBILENET_V2, REPLAY_LAYERS, last_width
from lrtflite_cli.commands.layers import command


def randomised(alpha: float, size: int) -> keras.Model:
    """Return keras.applications' network with random gamma and beta, and fitting moments."""
    model = keras.applications.MobileNetV2(
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


# An odd size pads differently before stride 2. At alpha 0.1 the first block adds its input too.
@pytest.mark.parametrize(("alpha", "size"), [(1.0, 96), (0.1, 75)])
def test_outputs_match_keras_applications(tmp_path: Path, alpha: float, size: int) -> None:
    theirs = randomised(alpha, size)
    theirs.save_weights(tmp_path / "weights.h5")
    ours, origin = mobilenet_with_weights(
        MOBILENET_V2_FAMILY,
        weights=str(tmp_path / "weights.h5"),
        alpha=alpha,
        input_size=size,
        classes=0,
    )
    assert origin.startswith("weights.h5 (sha256")
    x = np.random.default_rng(5).uniform(-1, 1, (2, size, size, 3)).astype(np.float32)
    first = "expanded_conv_add" if alpha == 0.1 else "expanded_conv_project_BN"
    pairs = {
        "conv1": "Conv1_relu",
        "block_0": first,
        "block_1": "block_1_project_BN",
        "block_2": "block_2_add",
        "block_13": "block_13_project_BN",
        "block_15": "block_15_add",
        "conv_last": "out_relu",
    }
    got = keras.Model(ours.input, [*(ours.get_layer(name).output for name in pairs), ours.output])(
        x
    )
    expected = keras.Model(
        theirs.input, [*(theirs.get_layer(name).output for name in pairs.values()), theirs.output]
    )(x)
    for name, ours_out, theirs_out in zip([*pairs, "pool"], got, expected):
        assert np.std(theirs_out) > 0.01, name
        np.testing.assert_allclose(ours_out, theirs_out, atol=1e-4, rtol=1e-4, err_msg=name)


@pytest.fixture(scope="module")
def narrow() -> keras.Model:
    """Return a network whose filters are rounded as at no published width."""
    keras.utils.set_random_seed(3)
    return mobilenet_v2(alpha=0.6, input_size=32, classes=0)


def test_weights_survive_a_file_and_bring_their_width(tmp_path: Path, narrow: keras.Model) -> None:
    write_npz(narrow, tmp_path / "w.npz")
    again, _ = mobilenet_with_weights(
        MOBILENET_V2_FAMILY, weights=str(tmp_path / "w.npz"), input_size=32, classes=0
    )
    x = np.random.default_rng(0).uniform(-1, 1, (2, 32, 32, 3)).astype(np.float32)
    np.testing.assert_array_equal(again(x), narrow(x))


def test_other_weights_are_one_line(tmp_path: Path, narrow: keras.Model) -> None:
    found = from_model(narrow, MOBILENET_V2_FAMILY)
    wide = {
        name: np.zeros((*array.shape[:-1], last_width(1.3)), np.float32)
        if name == "Conv_1/kernel"
        else array
        for name, array in found.arrays.items()
    }
    with pytest.raises(ModelError, match="of a MobileNetV2 of some alpha, got 24,"):
        MOBILENET_V2_FAMILY.find_alpha(wide)
    with pytest.raises(ModelError, match=r"0\.35, 0\.5, 0\.75, 1\.0, 1\.3, 1\.4 .*got 0\.6"):
        load_weights(narrow, "imagenet")
    np.savez(tmp_path / "other.npz", conv1=np.zeros(3))
    with pytest.raises(ModelError, match=r"260 arrays of a MobileNetV2.*Conv1/kernel"):
        load_weights(narrow, str(tmp_path / "other.npz"))
    with pytest.raises(ModelError, match=r"imagenet, none or a file.*'demo'"):
        mobilenet_with_weights(MOBILENET_V2_FAMILY, weights="demo")


def test_weights_of_another_width_are_one_line(tmp_path: Path, narrow: keras.Model) -> None:
    small = mobilenet_v2(alpha=0.35, input_size=32, classes=0)
    write_npz(small, tmp_path / "w.npz")
    before = narrow.get_weights()
    with pytest.raises(ModelError, match=r"alpha 0\.6, got alpha 0\.35 .*--alpha 0\.35") as caught:
        load_weights(narrow, str(tmp_path / "w.npz"))
    assert "\n" not in str(caught.value)
    for old, new in zip(before, narrow.get_weights()):
        np.testing.assert_array_equal(old, new)


def test_the_table_is_worked_out_by_hand() -> None:
    cost = network_cost(mobilenet_v2(alpha=1.0, input_size=128, classes=50), MOBILENET_V2)
    rows = {layer.name: layer for layer in cost.layers}
    assert tuple(rows) == (*REPLAY_LAYERS, "classifier")
    # 64 x 64 pixels; 32 filters of 3 x 3 x 3, and a bias.
    assert rows["conv1"].ops == 64 * 64 * 32 * 28
    # No expansion: 32 filters of 3 x 3, then 16 of 32.
    assert rows["block_0"].ops == 64 * 64 * (32 * 10 + 16 * 33)
    # 24 to 144 at 32 x 32, 3 x 3, 144 to 24, and the sum of 24 channels.
    assert rows["block_2"].ops == 32 * 32 * (144 * 25 + 144 * 10 + 24 * 145 + 24)
    assert rows["block_2"].weights == 144 * 25 + 144 * 10 + 24 * 145
    # 96 to 576 at 8 x 8, 3 x 3 with stride 2, 576 to 160 at 4 x 4, and no sum.
    assert rows["block_13"].ops == 64 * 576 * 97 + 16 * (576 * 10 + 160 * 577)
    last = rows["conv_last"]
    assert last == LayerCost(
        name="conv_last",
        neurons=16 * 1280,
        ops=16 * 1280 * 321,
        weights=1280 * 321,
        bytes_per_latent=4 * 16 * 1280,
        pooled_bytes=4 * 1280,
        computation=last.computation,
    )
    # Above it, the average of 16 pixels and 50 classes.
    above = 16 * 1280 + 50 * 1281
    assert last.computation == pytest.approx(100 * above / cost.ops)
    assert rows["pool"].pooled_bytes is None


def test_layers_command_lists_the_network() -> None:
    words = ["--network", "mobilenet_v2", "--alpha", "0.35", "--input-size", "64", "--json"]
    record = json.loads(CliRunner().invoke(command, words).output)
    assert record["network"] == "mobilenet_v2"
    assert [layer["name"] for layer in record["layers"]] == [*REPLAY_LAYERS, "classifier"]
    wrong = CliRunner().invoke(command, ["--network", "mobilenetv2"])
    assert isinstance(wrong.exception, InputError)
    assert str(wrong.exception).endswith("got 'mobilenetv2'; did you mean 'mobilenet_v2'?")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("block_5_add", "choose 'block_5'"),
        ("out_relu", "choose 'conv_last'"),
        ("block_3_expand_relu", "lies inside one; choose 'block_3'"),
        ("block_7/project", "lies inside one; choose 'block_7'"),
        ("expanded_conv_depthwise", "lies inside one; choose 'block_0'"),
        ("Conv_1_bn", "lies inside one; choose 'conv_last'"),
        ("classifier", "choose 'pool'"),
        ("block_17", "did you mean 'block_7'?"),
        ("conv5_4/dw", "Expected a replay layer of images, conv1, block_0"),
    ],
)
def test_other_names_get_advice(name: str, said: str) -> None:
    with pytest.raises(ModelError) as caught:
        MOBILENET_V2.check_layer(name)
    assert said in str(caught.value)
