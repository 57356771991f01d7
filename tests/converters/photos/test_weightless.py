"""Int8 models of EfficientNet-Lite0 lose their kernels and get them back, bit for bit."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from lrtflite.errors import BundleError
from lrtflite.host.efficientnet_lite0 import efficientnet_lite0, scale_frames
from lrtflite.host.family import EFFICIENTNET_LITE0_FAMILY
from lrtflite.host.network import Network
from lrtflite.host.weights import mobilenet_with_weights
from lrtflite.networks.efficientnet_lite0 import EFFICIENTNET_LITE0
from lrtflite.photos.weightless import KernelPlace, fill
from lrtflite.photos.weights import kernel_name, units
from lrtflite_converters.conversion.writing import split_network
from lrtflite_converters.quantise.calibration import Calibration
from lrtflite_converters.quantise.features import QuantisedFeatures
from lrtflite_converters.quantise.options import QuantiseOptions
from lrtflite_converters.request.options import Conversion


def make_photos() -> ModuleType:
    """Return the program that makes the parts of `photos`."""
    path = Path(__file__).parents[3] / "tools/make_photos.py"
    spec = importlib.util.spec_from_file_location("make_photos", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def arrays() -> dict[str, np.ndarray]:
    """Return weights of a narrow network, as its authors publish them."""
    rng, narrow = np.random.default_rng(0), efficientnet_lite0(alpha=0.1, input_size=32, classes=0)
    layers = {layer.name: layer for layer in narrow.layers}
    made = {}
    for unit, _, _ in units():
        kernel = layers[f"{unit}/conv"].get_weights()[0]
        width = kernel.shape[2] if unit.endswith("/dw") else kernel.shape[3]
        made[kernel_name(unit)] = rng.normal(0, 0.3, kernel.shape)
        made[f"{unit}/brn/gamma"] = rng.uniform(-1, 2, width)
        made[f"{unit}/brn/beta"] = rng.normal(0.5, 0.5, width)
        made[f"{unit}/brn/moving_mean"] = rng.normal(0, 0.1, width)
        made[f"{unit}/brn/moving_variance"] = rng.uniform(0.001, 2, width)
    return {name: array.astype(np.float32) for name, array in made.items()}


def test_kernels_are_put_back_bit_for_bit(tmp_path: Path, arrays: dict[str, np.ndarray]) -> None:
    np.savez(tmp_path / "weights.npz", **arrays)
    model, origin = mobilenet_with_weights(
        EFFICIENTNET_LITE0_FAMILY, weights=str(tmp_path / "weights.npz"), input_size=32, classes=0
    )
    frames = np.random.default_rng(1).integers(0, 256, (12, 32, 32, 3)).astype(np.uint8)
    options = Conversion(
        architecture=EFFICIENTNET_LITE0,
        strategy="lda",
        quantise=QuantiseOptions(mode="int8", calibrate="folder:pictures"),
    )
    features = split_network(
        Network(EFFICIENTNET_LITE0, model, scale_frames, origin),
        options,
        calibration=Calibration("frames", frames, np.arange(12) % 3),
    ).features
    assert isinstance(features, QuantisedFeatures)
    content = features.to_bytes()
    emptied, places = make_photos().without_kernels(content)
    assert [place.unit for place in places] == [unit for unit, _, _ in units()]
    kernels = sum(array.size for name, array in arrays.items() if name.endswith("kernel"))
    assert np.count_nonzero(np.frombuffer(content, np.uint8)) - np.count_nonzero(emptied) > (
        0.9 * kernels
    )
    filled = bytearray(emptied)
    fill(filled, places, arrays)
    assert bytes(filled) == content
    with pytest.raises(BundleError, match="got other values"):
        fill(filled, places, arrays)
    for start, scales in ((len(content), places[0].scales), (0, len(content)), (0, -4)):
        with pytest.raises(BundleError, match="install lrtflite again"):
            fill(bytearray(emptied), [KernelPlace("conv1", start, scales)], arrays)
