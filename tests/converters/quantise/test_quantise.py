"""Quantised features, and heads that take their int8 latents."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras as keras

from keras_reference import small_network
from lrtflite.errors import ModelError
from lrtflite.host.mobilenet import scale_frames
from lrtflite.host.network import Network
from lrtflite_converters.blocks.block import Chain
from lrtflite_converters.conversion import writing as export
from lrtflite_converters.conversion.writing import SplitNetwork, make_bundle, split_network
from lrtflite_converters.quantise import MODES, SUMMARIES, aware_training
from lrtflite_converters.quantise.aware_training import fine_tune, output_ranges
from lrtflite_converters.quantise.bias_correction import correct_biases
from lrtflite_converters.quantise.calibration import Calibration
from lrtflite_converters.quantise.features import QuantisedFeatures
from lrtflite_converters.quantise.folding import fold
from lrtflite_converters.quantise.int8 import oldest_runtime
from lrtflite_converters.quantise.judging import agreement, powers, signal_to_noise
from lrtflite_converters.quantise.options import QuantiseOptions
from lrtflite_converters.quantise.preparation import Preparation, rounded_kernel
from lrtflite_converters.quantise.scaling import FrameScaling
from lrtflite_converters.quantise.wrapping import wrap
from lrtflite_converters.request.options import Conversion
from lrtflite_converters.request.strategies import STRATEGIES
from lrtflite_converters.training.trunk import Trunk
from quantised_bundles import waves

CALIBRATION = Calibration("waves", waves(24, seed=1), np.arange(24) % 3)
INT8 = QuantiseOptions("int8", "waves")


@cache
def network() -> Network:
    return small_network(seed=0, input_size=32, alpha=1 / 16)


@cache
def split(layer: str, strategy: str, pooled: bool) -> SplitNetwork:
    options = Conversion(
        replay_layer=layer,
        strategy=strategy,
        pooled=pooled,
        classes=3,
        batch_size=6,
        new_per_batch=2,
        quantise=INT8,
    )
    return split_network(network(), options, calibration=CALIBRATION)


def prepared(*, epochs: int = 0) -> Preparation:
    below = keras.Model(network().model.input, network().layer("conv4_1/sep").output)
    scaling = FrameScaling.of(scale_frames)
    return Preparation(
        fold(below), CALIBRATION.frames, scale_frames, scaling, epochs, lambda _: None
    )


@pytest.mark.parametrize(
    ("layer", "strategy", "pooled"),
    [("conv5_6/sep", "lda", False), ("conv4_1/sep", "ncm", True)],
)
def test_int8_latents_are_those_of_the_network(layer: str, strategy: str, pooled: bool) -> None:
    parts = split(layer, strategy, pooled)
    frames = waves(5, seed=7)
    latents = parts.features.run("extract", frames=frames)["latents"]
    assert latents.dtype == np.int8
    expected = keras.Model(network().model.input, network().output(layer, pooled=pooled))(
        scale_frames(frames)
    ).numpy()
    assert latents.shape == expected.shape
    found = parts.quantisation
    assert found is not None
    # Random weights of a sixteenth of the width have hardly any redundancy that averages noise.
    assert signal_to_noise(*powers(expected, found.real(latents))) > 12
    assert found.snr_db > 12
    assert found.agreement is not None
    assert (found.mode, found.frames, found.epochs, found.calibration) == ("int8", 24, 0, "waves")
    assert found.int8_bytes == len(parts.features.to_bytes())
    assert parts.exact is not None
    assert found.float_bytes == len(parts.exact.to_bytes())
    # The older runtime is 2.14.
    assert tuple(map(int, oldest_runtime(parts.features.to_bytes()).split("."))) <= (2, 14, 0)


def test_the_head_dequantises_as_numpy_does() -> None:
    parts = split("conv5_6/sep", "lda", False)
    features, trunk = parts.features, parts.head.trunk
    assert isinstance(features, QuantisedFeatures)
    for signature in ("infer", "train", "train_last", "gather"):
        assert parts.head.signatures[signature].inputs["latents"].dtype == np.int8
    latents = np.random.default_rng(0).integers(-128, 128, (6, *trunk.latent_shape), np.int8)
    real = (latents.astype(np.float64) - features.zero_point) * features.scale
    found = trunk.first(tf.constant(latents)).numpy()
    np.testing.assert_allclose(found, real, rtol=1e-6)
    assert parts.quantisation is not None
    np.testing.assert_allclose(parts.quantisation.real(latents), real, rtol=1e-6)
    np.testing.assert_allclose(trunk.infer(tf.constant(latents)), trunk.infer_scaled(found))


def test_training_from_int8_is_training_from_the_values_they_stand_for() -> None:
    """Compare a head without a trunk with sums in numpy."""
    parts = split("conv4_1/sep", "ncm", True)
    features = parts.features
    assert isinstance(features, QuantisedFeatures)
    latents = features.run("extract", frames=waves(6, seed=3))["latents"]
    real = Trunk(Chain((), features.latent_shape)).infer(
        tf.constant(np.asarray(features.dequantise(latents)))
    )
    np.testing.assert_allclose(parts.head.trunk.infer(tf.constant(latents)), real, rtol=1e-6)
    targets = np.eye(3, dtype=np.float32)[np.arange(6) % 3]
    targets[5] = 0  # an empty place: its latent is 0, which does not stand for 0
    latents[5] = 0
    parts.head.run("gather", latents=latents, targets=targets)
    z = np.sqrt(real.numpy().clip(0))[:5]
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    sums = parts.head.run("save", zero=np.zeros(1, np.float32))["class_sums"]
    np.testing.assert_allclose(sums, targets[:5].T @ z, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("strategy", list(STRATEGIES))
def test_every_strategy_takes_int8_latents(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the signatures of each head, above a trunk if it can have one."""
    given: dict[str, Any] = {
        "strategy": strategy,
        "classes": 3,
        "batch_size": 6,
        "new_per_batch": 2,
    }
    try:
        options = Conversion(replay_layer="conv5_6/sep", quantise=INT8, **given)
        made = split("conv5_6/sep", "lda", False)
    except ModelError:
        options = Conversion(replay_layer="conv4_1/sep", pooled=True, quantise=INT8, **given)
        made = split("conv4_1/sep", "ncm", True)
    monkeypatch.setattr(export, "quantise", lambda *_, **__: made.features)
    monkeypatch.setattr(export, "compare", lambda *_: made.quantisation)
    head = split_network(network(), options, calibration=CALIBRATION).head
    takes = [
        each.inputs["latents"] for each in head.signatures.values() if "latents" in each.inputs
    ]
    assert len(takes) >= 2
    assert {tensor.dtype for tensor in takes} == {np.dtype(np.int8)}


def test_biases_keep_the_mean_of_each_channel() -> None:
    exact, shifted, corrected = prepared(), prepared(), prepared()
    correct_biases(corrected)
    for preparation in (shifted, corrected):
        for layer in preparation.convolutions:
            layer.set_weights([rounded_kernel(layer), layer.get_weights()[1]])

    def means(preparation: Preparation, inputs: np.ndarray) -> list[np.ndarray]:
        outputs = [layer.output for layer in preparation.convolutions]
        found = keras.Model(preparation.model.input, outputs)(inputs)
        return [np.asarray(each).mean(axis=(0, 1, 2), dtype=np.float64) for each in found]

    wanted = means(exact, scale_frames(exact.frames))
    for each, found in zip(wanted, means(corrected, corrected.scaling(corrected.frames))):
        np.testing.assert_allclose(found, each, atol=1e-3)
    uncorrected = means(shifted, shifted.scaling(shifted.frames))
    assert max(np.abs(x - y).max() for x, y in zip(uncorrected, wanted)) > 0.02


def test_a_rounded_kernel_has_127_steps_per_channel() -> None:
    for layer in prepared().convolutions:
        kernel, rounded = layer.get_weights()[0], rounded_kernel(layer)
        axes = (0, 1) if isinstance(layer, keras.layers.DepthwiseConv2D) else (0, 1, 2)
        largest = np.abs(kernel).max(axis=axes, keepdims=True)
        steps = rounded / largest * 127
        np.testing.assert_allclose(steps, np.round(steps), atol=1e-3)
        assert (np.abs(rounded - kernel) <= largest / 254 * 1.001).all()


def test_scaling_of_frames() -> None:
    # (byte - 127.5) / 127.5: the zero point is a whole number.
    scaling = FrameScaling.of(scale_frames)
    assert scaling.zero == 128
    assert scaling.step == pytest.approx(1 / 127.5)
    assert FrameScaling.of(lambda x: tf.cast(x, tf.float32) / 64.0) == FrameScaling(1 / 64, 0)
    for odd in (
        lambda x: tf.cast(x, tf.float32) - tf.constant([103.9, 116.8, 123.7]),
        lambda x: tf.sqrt(tf.cast(x, tf.float32)),
        lambda x: 1.0 + tf.cast(x, tf.float32),
    ):
        with pytest.raises(ModelError, match=r"one factor and offset.*leave --quantize out"):
            FrameScaling.of(odd)


def test_fine_tuning_lowers_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = prepared().model(scale_frames(CALIBRATION.frames)).numpy()
    ranges = output_ranges(prepared())

    def quality(preparation: Preparation) -> float:
        rounds = wrap(preparation.model, ranges)
        found = rounds(preparation.scaling(preparation.frames), training=True).numpy()
        return signal_to_noise(*powers(exact, found))

    plain, tuned = prepared(), prepared(epochs=12)
    correct_biases(plain)
    monkeypatch.setattr(aware_training, "RATE", 3e-4)  # because there are only 24 steps
    fine_tune(tuned)
    assert quality(tuned) > quality(plain) + 1


def test_a_layer_that_cannot_be_wrapped_is_named(tmp_path: Path) -> None:
    image = keras.Input((32, 32, 3), name="images")
    odd = Odd(name="twice")(keras.layers.Conv2D(4, 3, name="first")(image))
    model = keras.Model(image, odd)
    scaling = FrameScaling.of(scale_frames)
    given = Preparation(model, CALIBRATION.frames, scale_frames, scaling, 1, lambda _: None)
    before = model.get_weights()
    with pytest.raises(ModelError, match=r"model-optimization can wrap, got twice \(Odd\)"):
        fine_tune(given)
    np.testing.assert_array_equal(model.get_weights()[0], before[0])


class Odd(keras.layers.Layer):
    """A layer that nobody knows."""

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        return 2.0 * inputs


def test_a_failed_fine_tuning_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aware_training, "RATE", float("nan"))
    options = Conversion(classes=3, quantise=QuantiseOptions("qat", "waves", epochs=1))
    with pytest.raises(ModelError, match="finite loss of fine-tuning, got nan"):
        make_bundle(network(), tmp_path / "b", options=options, calibration=CALIBRATION)
    assert list(tmp_path.iterdir()) == []


def test_ranges_contain_zero() -> None:
    for low, high in output_ranges(prepared()).values():
        assert low <= 0 < high


def test_agreement_and_noise() -> None:
    assert signal_to_noise(*powers(np.full(3, 10.0), np.full(3, 9.0))) == pytest.approx(20)
    assert signal_to_noise(1.0, 0.0) == 999
    labels = np.array([0, 0, 1, 1])
    exact = np.array([[9, 0], [9, 1], [0, 9], [1, 9]], np.float32)
    assert agreement(exact, exact, labels) == 1
    # The fourth frame is nearer to class 0 now: half of the two answers are the same.
    assert agreement(exact, np.array([[9, 0], [9, 1], [0, 9], [9, 1]], np.float32), labels) == 0.5
    assert agreement(exact, exact, np.array([0, 0, 0, 1])) is None
    assert agreement(exact[:1], exact[:1], labels[:1]) is None


def test_every_mode_has_a_summary() -> None:
    assert list(MODES) == list(SUMMARIES)
