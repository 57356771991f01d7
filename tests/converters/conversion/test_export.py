"""From a Keras model to a bundle."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras as keras

from keras_reference import as_network
from lrtflite.bundle.bundle import Bundle
from lrtflite.errors import BundleError, ConversionError, InputError, ModelError
from lrtflite.host.first_batch import FirstBatch
from lrtflite.host.mobilenet import mobilenet_v1
from lrtflite.host.training.renorm_schedule import RenormLimits, set_limits
from lrtflite.networks.mobilenet_v1 import REPLAY_LAYERS
from lrtflite.state.initial import shipped_labels
from lrtflite_converters.conversion.convert import convert
from lrtflite_converters.conversion.writing import make_bundle
from lrtflite_converters.features.features import Features
from lrtflite_converters.request.options import Conversion
from lrtflite_converters.request.source import Source, read_labels
from lrtflite_converters.tflite.convert import to_tflite


@pytest.fixture(scope="module")
def model() -> keras.Model:
    """Return a small network whose fc7 has learned three of its four classes."""
    keras.utils.set_random_seed(0)
    model = mobilenet_v1(alpha=0.125, input_size=32, classes=4)
    model.get_layer("fc7").set_labels(["cup", "ball", "hat"], [10, 20, 0])
    # Moments that fit the weights, as after training: with others the values fade to 0.
    set_limits(model, RenormLimits(r_max=1.0, d_max=0.0, momentum=0.0))
    model(np.random.default_rng(1).uniform(-1, 1, (64, 32, 32, 3)).astype("f"), training=True)
    return model


@pytest.fixture(scope="module")
def bundle(model: keras.Model, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    out = tmp_path_factory.mktemp("export") / "deep" / "bundle"
    options = Conversion(batch_size=10, new_per_batch=3, replay_size=70, policy="balanced")
    return Bundle.open(make_bundle(as_network(model), out, options=options))


DEVICE = """
import json, sys
import numpy as np
from lrtflite import Learner
learner = Learner.open(sys.argv[1], runtime=sys.argv[2])
frames = np.load(sys.argv[3])
print(json.dumps([learner.labels, learner.extract(frames).tolist(),
                  learner.probabilities(learner.extract(frames)).tolist()]))
"""


def test_frames_to_probabilities(
    model: keras.Model, bundle: Bundle, runtime: str, tmp_path: Path
) -> None:
    frames = np.random.default_rng(0).integers(0, 256, (5, 32, 32, 3)).astype(np.uint8)
    np.save(tmp_path / "frames.npy", frames)
    command = [sys.executable, "-c", DEVICE, bundle.path, runtime, tmp_path / "frames.npy"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    labels, latents, probabilities = json.loads(done.stdout)
    # Three named and five free slots: the paper's app adds five to its ten.
    assert labels == ["cup", "ball", "hat", None, None, None, None, None]
    images = frames.astype(np.float32) / 127.5 - 1
    expected = keras.Model(model.input, model.get_layer("pool6").output)(images).numpy()
    # Tolerance for folding and for sums in another order, through 27 layers of random weights.
    np.testing.assert_allclose(latents, expected, rtol=1e-3, atol=2e-4)
    # The Keras softmax over the two classes with patterns; "hat" has none.
    scores = model(images).numpy()[:, :2]
    e = np.exp(scores - scores.max(-1, keepdims=True))
    found = np.array(probabilities)
    np.testing.assert_allclose(found[:, :2], e / e.sum(-1, keepdims=True), rtol=1e-3)
    np.testing.assert_array_equal(found[:, 2:], 0)


def test_the_manifest(bundle: Bundle) -> None:
    manifest = bundle.manifest
    assert (manifest.replay_layer, manifest.input_size) == ("pool6", 32)
    assert (manifest.latent_shape, manifest.slots) == ((128,), 8)
    assert (manifest.feeding.batch_size, manifest.feeding.new_per_batch) == (10, 3)
    assert (manifest.replay_size, manifest.policy) == (70, "balanced")
    assert set(manifest.files) == {"features.tflite", "head.tflite", "golden.npz"}
    assert "CONV_2D v1" in manifest.ops["features.tflite"]
    # Batch Renorm of a frozen network is folded into its convolutions.
    assert not any("RSQRT" in op for op in manifest.ops["features.tflite"])
    assert any("BATCH_MATMUL" in op for op in manifest.ops["head.tflite"])


def test_a_bundle_is_replaced_and_anything_else_is_not(
    model: keras.Model, bundle: Bundle, tmp_path: Path
) -> None:
    network, out = as_network(model), tmp_path / "out"
    out.mkdir()
    (out / "thesis.tex").write_text("years of work")
    with pytest.raises(BundleError, match="new or empty folder"):
        make_bundle(network, out, options=Conversion())
    # A folder with a manifest and other files is not a bundle.
    (out / "manifest.json").write_text("{}")
    with pytest.raises(BundleError, match="a bundle and nothing else"):
        make_bundle(network, out, options=Conversion())
    assert (out / "thesis.tex").read_text() == "years of work"
    before = bundle.manifest
    options = Conversion(batch_size=10, new_per_batch=3)
    another = dataclasses.replace(network, origin="another")
    with pytest.raises(BundleError, match=r"got the bundle .* give --replace"):
        make_bundle(another, bundle.path, options=options)
    assert Bundle.open(bundle.path).manifest == before
    make_bundle(another, bundle.path, options=options, replace=True)
    assert Bundle.open(bundle.path).manifest.backbone == "another"
    assert before.backbone == "a test"
    assert [path.name for path in bundle.path.parent.iterdir()] == ["bundle"]


def test_options_are_checked() -> None:
    with pytest.raises(ModelError, match=r"got 'pool7'; did you mean 'pool6'"):
        Conversion(replay_layer="pool7")
    for layer in REPLAY_LAYERS[:-1]:
        assert Conversion(replay_layer=layer).minibatch == (128, 21)
    assert Conversion(replay_layer="pool6").minibatch == (120, 20)
    with pytest.raises(ModelError, match="1 to 10 new patterns"):
        Conversion(batch_size=10, new_per_batch=11)
    with pytest.raises(ModelError, match="distinct"):
        Conversion(labels=("a", "a"))
    with pytest.raises(ModelError, match="Expected 1 to 100,000 classes, got 0"):
        Conversion(classes=0)
    with pytest.raises(ModelError, match="at most 4096, got 1,000,000"):
        Conversion(batch_size=10**6)


def test_labels_and_slots_must_fit(model: keras.Model, tmp_path: Path) -> None:
    for options, message in (
        (Conversion(classes=2), "at least 3 classes"),
        (Conversion(labels=("a", "b")), "3 classes that the model has learned"),
    ):
        with pytest.raises(ModelError, match=message):
            make_bundle(as_network(model), tmp_path / "out", options=options)
        assert not (tmp_path / "out").exists()


def test_read_labels(tmp_path: Path) -> None:
    assert read_labels(None) == ()
    assert read_labels("cup, ball") == ("cup", "ball")
    many = [f"number {i}" for i in range(50)]  # too long for a file name
    assert read_labels(",".join(many)) == tuple(many)
    (tmp_path / "latin.txt").write_bytes("caf\xe9".encode("latin-1"))
    with pytest.raises(ModelError, match="UTF-8"):
        read_labels(str(tmp_path / "latin.txt"))
    (tmp_path / "labels.txt").write_text("cup\n\nold hat\n")
    assert read_labels(str(tmp_path / "labels.txt")) == ("cup", "old hat")
    with pytest.raises(ModelError, match="Expected labels"):
        read_labels(" , ")
    for gap in ("a,,b", "a,b,", ",a"):
        with pytest.raises(ModelError, match="Expected labels as a,b,c"):
            read_labels(gap)
    with pytest.raises(InputError, match="at most 200 characters, got 201"):
        read_labels("x" * 201 + ",b")
    assert read_labels("cafe\u0301,b") == ("caf\u00e9", "b")
    # A single word is a label, unless it looks like the name of a missing file.
    assert read_labels("dr. pepper") == ("dr. pepper",)
    for missing in ("lables.txt", str(tmp_path / "labels")):
        with pytest.raises(ModelError, match=f"got {missing}, which is not a file"):
            read_labels(missing)


def test_a_flex_op_fails_the_conversion_with_its_name() -> None:
    class Gradient(tf.Module):
        """A module with autodiff's gradient of a convolution, which does not convert."""

        @tf.function(
            input_signature=[
                tf.TensorSpec([1, 4, 4, 2], tf.float32, "x"),
                tf.TensorSpec([1, 4, 4, 3], tf.float32, "dy"),
            ]
        )
        def call(self, x: Any, dy: Any) -> Any:
            sizes, strides = [3, 3, 2, 3], [1, 1, 1, 1]
            return {"dw": tf.compat.v1.nn.conv2d_backprop_filter(x, sizes, dy, strides, "SAME")}

    module = Gradient()
    with pytest.raises(ConversionError, match="Conv2DBackpropFilter") as caught:
        to_tflite(module, {"call": module.call}, variables=False)
    assert "\n" not in str(caught.value)


def test_a_model_without_the_layer() -> None:
    images = keras.Input((32, 32, 3))
    other = keras.Model(images, keras.layers.Flatten()(images))
    with pytest.raises(ModelError, match="'pool6'"):
        Features(as_network(other), "pool6")


def test_an_untrained_network_is_refused(tmp_path: Path) -> None:
    fading = mobilenet_v1(alpha=0.125, input_size=32, classes=0)
    with pytest.raises(ModelError, match="Expected a trained network"):
        make_bundle(as_network(fading), tmp_path / "out", options=Conversion())
    assert not (tmp_path / "out").exists()


def test_a_network_with_nan_in_it_is_refused(model: keras.Model, tmp_path: Path) -> None:
    spoilt = keras.models.clone_model(model)
    spoilt.set_weights(model.get_weights())
    norm = next(layer for layer in spoilt.layers if type(layer).__name__ == "BatchRenorm")
    norm.gamma.assign(norm.gamma * float("nan"))
    with pytest.raises(ModelError, match="finite weights, got NaN"):
        make_bundle(as_network(spoilt), tmp_path / "out", options=Conversion())
    assert not (tmp_path / "out").exists()


def test_model_and_weights_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="got both"):
        convert(tmp_path / "b", Source(model="m.keras", weights="demo"))
    assert not (tmp_path / "b").exists()


def test_what_was_learned_on_the_host_ships_with_a_memory(
    model: keras.Model, tmp_path: Path, runtime: str
) -> None:
    """Check that the bundle has the host's head, and its frames in the replay memory."""
    rng = np.random.default_rng(2)
    images = rng.integers(0, 256, (6, 32, 32, 3)).astype(np.uint8)
    batch = FirstBatch(images, np.array([0, 0, 0, 1, 1, 1], np.int32))
    options = Conversion(batch_size=10, new_per_batch=3)
    out = make_bundle(as_network(model), tmp_path / "b", options=options, batch=batch)
    bundle = Bundle.open(out)
    # "hat" has a name but no patterns.
    assert shipped_labels(bundle) == ("cup", "ball")
    np.save(tmp_path / "frames.npy", images)
    command = [sys.executable, "-c", SHIPPED, out, runtime, tmp_path / "frames.npy"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    memory, latents, slots, sessions, learned = json.loads(done.stdout)
    order = np.argsort(slots, kind="stable")
    np.testing.assert_allclose(
        np.sort(np.array(memory)[order], axis=0), np.sort(latents, axis=0), rtol=1e-3, atol=1e-4
    )
    assert sorted(slots) == [0, 0, 0, 1, 1, 1]
    assert (sessions, learned) == (1, ["cup", "ball"])


SHIPPED = """
import json, sys
import numpy as np
from lrtflite import Learner
learner = Learner.open(sys.argv[1], runtime=sys.argv[2])
frames = np.load(sys.argv[3])
memory = learner.memory
latents = memory.latents(np.arange(len(memory)))
print(json.dumps([latents.tolist(), learner.extract(frames).tolist(),
                  memory.slots.tolist(), learner.sessions, learner.learned]))
"""
