"""Moments below the replay layer adapt as in Keras, and nothing else moves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tf_keras as keras

from keras_reference import small_network
from lrtflite.bundle.bundle import Bundle
from lrtflite.host.batch_renorm import BatchRenorm
from lrtflite.host.training.renorm_schedule import RenormLimits, set_limits
from lrtflite.runtime.flatbuffer import custom_ops
from lrtflite_converters.conversion.writing import make_bundle
from lrtflite_converters.request.options import Conversion

DEVICE = """
import sys
from pathlib import Path
import numpy as np
from lrtflite.runtime.model import Model
path, runtime, inputs, outputs = sys.argv[1:]
frames, zero = np.load(inputs), np.zeros(1, np.float32)
features = Model(Path(path), runtime=runtime)
found = {"before": features.run("extract", frames=frames)["latents"]}
start = features.run("save", zero=zero)
given = {"adapt_rate": 0.25, "epochs": 1.0, "r_max": 3.0, "d_max": 5.0}
rates = {name: np.array([value], np.float32) for name, value in given.items()}
features.run("adapt", frames=frames, **rates)
moments = features.run("save", zero=zero)
found["after"] = features.run("extract", frames=frames)["latents"]
fresh = Model(Path(path), runtime=runtime)
fresh.run("restore", **moments)
found["fresh"] = fresh.run("extract", frames=frames)["latents"]
fresh.run("restore", **start)
found["back"] = fresh.run("extract", frames=frames)["latents"]
np.savez(outputs, **found, **{f"moments/{name}": value for name, value in moments.items()})
"""


@pytest.mark.parametrize("replay_layer", ["conv4_1/dw", "pool6"])
def test_moments_adapt_and_weights_stay(replay_layer: str, runtime: str, tmp_path: Path) -> None:
    network = small_network(seed=1, input_size=48)
    options = Conversion(
        replay_layer=replay_layer, classes=3, batch_size=6, new_per_batch=4, adapt_moments=True
    )
    bundle = Bundle.open(make_bundle(network, tmp_path / "b", options=options))
    assert bundle.manifest.adapt_moments
    assert custom_ops(bundle.features) == []
    frames = np.random.default_rng(0).integers(0, 256, (4, 48, 48, 3)).astype(np.uint8)
    np.save(tmp_path / "frames.npy", frames)
    content = bundle.features.path.read_bytes()
    command = [
        sys.executable,
        "-c",
        DEVICE,
        bundle.features.path,
        runtime,
        tmp_path / "frames.npy",
        tmp_path / "found.npz",
    ]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "found.npz") as archive:
        found = dict(archive)

    below = keras.Model(network.model.input, network.layer(replay_layer).output)
    images = frames / np.float32(127.5) - 1
    np.testing.assert_allclose(found["before"], below(images), rtol=1e-3, atol=2e-4)
    expected = adapted_by_keras(below, images, rate=0.25)
    moved = {name[len("moments/") :]: v for name, v in found.items() if name.startswith("moments/")}
    assert set(moved) == set(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(moved[name], value, rtol=1e-3, atol=1e-4, err_msg=name)
    np.testing.assert_allclose(found["after"], below(images), rtol=1e-3, atol=1e-3)
    assert np.abs(found["after"] - found["before"]).max() > 0.01
    np.testing.assert_array_equal(found["fresh"], found["after"])
    np.testing.assert_array_equal(found["back"], found["before"])
    # Weights are constants in the file, and the state has only moments.
    assert all(name.endswith(("_mean", "_variance")) for name in moved)
    assert bundle.features.path.read_bytes() == content


def adapted_by_keras(
    network: keras.Model, images: np.ndarray, *, rate: float
) -> dict[str, np.ndarray]:
    """Return the moments after a training pass of frozen layers with `adapt_moments`."""
    set_limits(network, RenormLimits(r_max=3.0, d_max=5.0, momentum=1 - rate))
    norms = [layer for layer in network.layers if isinstance(layer, BatchRenorm)]
    for layer in network.layers:
        layer.trainable = False
    for norm in norms:
        norm.adapt_moments = True
    moments = {id(moment) for norm in norms for moment in (norm.moving_mean, norm.moving_variance)}
    others = [v for v in network.variables if id(v) not in moments]
    before = [v.numpy() for v in others]
    network(images, training=True)
    assert len(others) > 3 * len(norms)  # kernels, gammas, betas
    for value, variable in zip(before, others):
        np.testing.assert_array_equal(variable.numpy(), value)
    found = {}
    for norm in norms:
        prefix = norm.name[: -len("/brn")].replace("/", "_")
        found[f"{prefix}_mean"] = norm.moving_mean.numpy()
        found[f"{prefix}_variance"] = norm.moving_variance.numpy()
    return found
