"""Users' own models: what Keras computes is computed, and each layer trains as autodiff says."""

from __future__ import annotations

import importlib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from lrtflite.bundle.bundle import Bundle
from lrtflite.errors import ConversionError, ModelError
from lrtflite.host.batch_renorm import BatchRenorm
from lrtflite_converters.blocks.joined import Joined
from lrtflite_converters.blocks.split import blocks_above
from lrtflite_converters.conversion import on_device
from lrtflite_converters.conversion.making import find_network
from lrtflite_converters.conversion.writing import make_bundle, split_network
from lrtflite_converters.features.latent_range import latent_range
from lrtflite_converters.features.sample_frames import wave_frames
from lrtflite_converters.keras_models.network import OwnNetwork
from lrtflite_converters.request.options import Conversion
from lrtflite_converters.request.source import Source
from lrtflite_converters.training import trunk as trunk_module
from own_models import SIZE, features_of, joined, nested, plain, randomise, saved
from trunk_head import SLOTS, begin, make_head, scalars, trunk_state

BATCH = 12
FRAMES = wave_frames(BATCH, SIZE, np.random.default_rng(1))
RATES = {"lr": 0.01, "trunk_lr": 0.1, "momentum": 0.0, "weight_decay": 0.0, "moment_rate": 0.1}
LIMITS = {"r_max": 3.0, "d_max": 5.0}


@pytest.fixture
def keras_3() -> Any:
    return importlib.import_module("keras")


@pytest.mark.parametrize("name", ["own.keras", "own.h5"])
@pytest.mark.parametrize(
    ("build", "layer"), [(plain, "hidden"), (joined, "features"), (nested, "pooled")]
)
@pytest.mark.filterwarnings("ignore:You are saving your model as an HDF5 file")
def test_a_file_of_tf_keras_gives_the_same_features(
    build: Callable[..., Any], layer: str, name: str, tmp_path: Path
) -> None:
    model = randomise(build())
    network = saved(model, tmp_path / name)
    assert network.architecture.pooled == layer
    expected = features_of(tf_keras, model, layer, FRAMES)
    found = network.model(network.scale(FRAMES)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("name", ["own.keras", "own.h5"])
@pytest.mark.parametrize(
    ("build", "layer"), [(plain, "hidden"), (joined, "features"), (nested, "pooled")]
)
def test_a_file_of_keras_3_gives_the_same_features(
    build: Callable[..., Any], layer: str, name: str, tmp_path: Path, keras_3: Any
) -> None:
    model = randomise(build(keras_3))
    network = saved(model, tmp_path / name)
    expected = features_of(keras_3, model, layer, FRAMES)
    found = network.model(network.scale(FRAMES)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_batch_normalization_becomes_batch_renorm(tmp_path: Path) -> None:
    model = randomise(joined())
    network = saved(model, tmp_path / "own.keras")
    norm, expected = network.layer("dense_norm"), model.get_layer("dense_norm")
    assert isinstance(norm, BatchRenorm)
    np.testing.assert_array_equal(norm.moving_mean, expected.moving_mean)
    np.testing.assert_array_equal(norm.moving_variance, expected.moving_variance)


def test_layers_that_can_be_the_replay_layer(tmp_path: Path) -> None:
    network = saved(plain(), tmp_path / "own.keras")
    found = network.architecture
    assert found.replay_layers[1:] == (
        "first",
        "halved",
        "second",
        "overlapping",
        "third",
        "averaged",
        "flat",
        "hidden",
    )
    assert found.resting_layers == ("hidden",)
    network = saved(joined(), tmp_path / "joined.keras")
    found = network.architecture
    assert found.replay_layers == (
        "images",
        "stem",
        "sum",
        "after_sum",
        "active",
        "two_paths",
        "wide",
        "highest",
        "features",
    )
    assert isinstance(blocks_above(network, "stem", train_depthwise=True).blocks[0], Joined)


def test_costs_by_hand(tmp_path: Path) -> None:
    network = saved(plain(), tmp_path / "own.keras")
    rows = {row.name: row for row in network.costs}
    first, second = rows["first"], rows["second"]
    assert (first.neurons, first.bytes_per_latent) == (16 * 16 * 6, 4 * 16 * 16 * 6)
    assert first.ops == 16 * 16 * 6 * (3 * 3 * 3 + 1)
    assert first.weights == 3 * 3 * 3 * 6 + 6
    # The window of `halved` reads each value once; `second` is 6x6 after a valid convolution.
    assert rows["halved"].ops == 16 * 16 * 6
    assert second.ops == 6 * 6 * 5 * (3 * 3 * 6 + 1)
    total = sum(row.ops for row in network.costs)
    assert rows["hidden"].computation == 0
    assert first.computation == pytest.approx(100 * (total - first.ops) / total)
    assert network.costs[0].computation == 100


# From the input, above each kind of block, and in several parts of a mini-batch.
@pytest.mark.parametrize(
    ("build", "layer", "parts"),
    [
        (plain, None, 1),
        (plain, "halved", 3),
        (plain, "third", 1),
        (joined, None, 2),
        (joined, "stem", 1),
        (joined, "after_sum", 3),
        (joined, "two_paths", 1),
    ],
)
def test_a_step_is_autodiffs(
    build: Callable[..., Any],
    layer: str | None,
    parts: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trunk_module, "PART_BYTES", 1)
    monkeypatch.setattr(trunk_module, "MAX_PARTS", parts)
    network = saved(randomise(build()), tmp_path / "own.keras")
    layer = layer or network.architecture.replay_layers[0]
    head = make_head(network, layer, batch_size=BATCH)
    latents = FRAMES
    if not network.architecture.reads_frames(layer):
        below = tf_keras.Model(network.model.input, network.output(layer))
        latents = below(network.scale(FRAMES)).numpy()
    targets = np.eye(SLOTS, dtype=np.float32)[np.arange(BATCH) % SLOTS]
    before = trunk_state(head)
    begin(head)
    rates = scalars(head, {**RATES, **LIMITS})
    (loss,) = head.run("train", latents=latents, targets=targets, **rates)["loss"]
    expected_loss, gradients = autodiff(network, layer, latents, targets, head.cw.numpy())
    assert float(loss) == pytest.approx(expected_loss, rel=1e-4)
    after, checked = trunk_state(head), 0
    for name in head.trunk.parameters:
        change = (before[name] - after[name]).ravel() / RATES["trunk_lr"]
        # Each weight has values of its own, by which its gradient is found.
        (gradient,) = [
            each for value, each in gradients if np.array_equal(value, before[name].ravel())
        ]
        off = np.linalg.norm(change - gradient)
        assert off <= 2e-3 * np.linalg.norm(gradient) + 1e-6, name
        checked += 1
    # Batch Renorm ignores the bias below it, whose gradient is 0.
    assert checked == sum(bool(each.any()) for _, each in gradients)


def autodiff(
    network: OwnNetwork, layer: str, latents: Any, targets: Any, cw: np.ndarray
) -> tuple[float, list[tuple[np.ndarray, np.ndarray]]]:
    """Return the loss, and each weight above a layer with its gradient."""
    above = tf_keras.Model(network.layer(layer).output, network.model.output)
    for each in above.layers:
        if isinstance(each, BatchRenorm):
            each.set_limits(**LIMITS)
    x = network.scale(latents) if network.architecture.reads_frames(layer) else latents
    with tf.GradientTape() as tape:
        scores = tf.matmul(above(x, training=True), cw, transpose_b=True)
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(targets, scores))
    found = tape.gradient(loss, above.trainable_variables)
    pairs = zip(above.trainable_variables, found)
    near = 1e-5 * max(float(tf.norm(gradient)) for gradient in found)
    return float(loss), [
        (
            variable.numpy().ravel(),
            gradient.numpy().ravel() * (float(tf.norm(gradient)) > near),
        )
        for variable, gradient in pairs
    ]


@pytest.fixture
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make bundles without measuring them, which takes longer than all the rest."""

    def refuse(bundle: Path, runtime: str) -> None:
        raise ConversionError("not in this test")

    monkeypatch.setattr(on_device, "measure", refuse)


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize("strategy", ["ar1"])
def test_a_bundle_of_biases_and_relu_trains_on_every_runtime(strategy: str, tmp_path: Path) -> None:
    """`make_bundle` runs the golden sessions on each installed runtime."""
    network = saved(randomise(plain()), tmp_path / "own.keras")
    options = Conversion(
        architecture=network.architecture,
        replay_layer="halved",
        strategy=strategy,
        batch_size=8,
        classes=4,
        replay_size=10,
    )
    path = make_bundle(network, tmp_path / "bundle", options=options)
    manifest = Bundle.open(path).manifest
    assert (manifest.network, manifest.replay_layer) == ("own", "halved")
    assert manifest.trains_trunk
    assert not {"r_max", "d_max", "moment_rate"} & set(manifest.rates)


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize(
    "given",
    [
        {"replay_layer": "after_sum", "adapt_moments": True, "strategy": "lda"},
        {"replay_layer": "two_paths", "pooled": True, "strategy": "lda"},
    ],
)
def test_a_bundle_with_sums_trains_on_every_runtime(given: dict[str, Any], tmp_path: Path) -> None:
    network = saved(randomise(joined()), tmp_path / "own.keras")
    options = Conversion(
        architecture=network.architecture,
        batch_size=8,
        new_per_batch=2,
        classes=4,
        replay_size=10,
        **given,
    )
    manifest = Bundle.open(make_bundle(network, tmp_path / "b", options=options)).manifest
    assert manifest.pooled == given.get("pooled", False)
    assert manifest.adapt_moments == given.get("adapt_moments", False)


def test_the_learning_rate_fits_the_size_of_the_features(tmp_path: Path) -> None:
    """Features of twice the size change scores four times as much in a step."""
    model = randomise(plain())
    rates = []
    for factor in (1.0, 2.0):
        hidden = model.get_layer("hidden")
        hidden.set_weights([factor * weight for weight in hidden.get_weights()])
        network = saved(model, tmp_path / "own.keras")
        options = Conversion(architecture=network.architecture, strategy="cwr")
        rates.append(split_network(network, options).training.rates["lr"].value)
    assert rates[0] / rates[1] == pytest.approx(4.0, rel=1e-3)


def test_latents_without_a_norm_have_a_generous_range(tmp_path: Path) -> None:
    network = saved(randomise(plain()), tmp_path / "own.keras")
    assert latent_range(network, "second") == (0.0, 6.0)
    assert latent_range(network, "overlapping") == (0.0, 6.0)
    low, high = latent_range(network, "first")
    assert (low, high >= 1e4) == (0.0, True)
    low, high = latent_range(network, "third")  # linear
    assert low == -high <= -1e4


def test_a_network_is_refused_beside_an_own_model(tmp_path: Path) -> None:
    path = tmp_path / "own.keras"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", "{}")
    with pytest.raises(ModelError, match="own model without --network, got 'mobilenet_v2'; leave"):
        find_network(Source(network="mobilenet_v2", model=str(path)))
