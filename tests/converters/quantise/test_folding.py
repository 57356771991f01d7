"""A folded network computes what the original one does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tf_keras as keras

from keras_reference import settle, small_network
from lrtflite.host.batch_renorm import BatchRenorm
from lrtflite_converters.quantise.folding import fold

layers = keras.layers


# Rounding relative to the largest output: of a few layers, and of 27 with random weights, each of
# which amplifies the rounding of those below (1.2e-4 measured).
FEW, MANY = 2e-5, 3e-4


def assert_same(model: keras.Model, folded: keras.Model, rounding: float = FEW) -> None:
    size = model.input_shape[1]
    images = np.random.default_rng(3).uniform(-1, 1, (4, size, size, 3)).astype("f")
    expected = model(images).numpy()
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(folded(images), expected, atol=rounding * np.abs(expected).max())


def norms(model: keras.Model) -> int:
    return sum(isinstance(x, (BatchRenorm, layers.BatchNormalization)) for x in model.layers)


@pytest.mark.parametrize("layer", ["conv1", "conv4_2/dw", "pool6"])
def test_every_replay_layer(layer: str) -> None:
    # 48 pixels are halved to an odd side, which has a ZeroPadding2D.
    network = small_network(seed=0, input_size=48)
    below = keras.Model(network.model.input, network.layer(layer).output)
    folded = fold(below)
    assert_same(below, folded, MANY)
    assert norms(below) > 0
    assert norms(folded) == 0
    # Both kinds of convolutions have a bias now, and there is no other new weight.
    kinds = (layers.Conv2D, layers.DepthwiseConv2D)
    assert all(x.use_bias for x in folded.layers if isinstance(x, kinds))
    assert len(folded.layers) == len(below.layers) - norms(below)


def test_the_original_stays_as_it_was() -> None:
    network = small_network(seed=1, input_size=32)
    before = [value.copy() for value in network.model.get_weights()]
    fold(network.model)
    for value, old in zip(network.model.get_weights(), before):
        np.testing.assert_array_equal(value, old)


def residual(inner: Any) -> keras.Model:
    """Return a network with a sum, batch norms of both kinds, biases and a depth multiplier."""
    keras.utils.set_random_seed(2)
    image = keras.Input((16, 16, 3), name="images")
    x = layers.Conv2D(8, 3, padding="same", name="first")(image)  # with a bias
    x = layers.ReLU(6.0, name="start")(layers.BatchNormalization(name="bn")(x))
    y = layers.DepthwiseConv2D(3, padding="same", depth_multiplier=2, use_bias=False)(x)
    y = BatchRenorm(name="inner")(y)
    y = layers.Conv2D(8, 1, use_bias=False, name="bottleneck")(y)
    y = inner(y)
    return keras.Model(image, layers.Add(name="sum")([x, y]))


def test_sums_biases_and_multipliers() -> None:
    model = residual(BatchRenorm(name="linear"))
    settle(model, seed=2)
    bn = model.get_layer("bn")
    bn.set_weights([np.linspace(0.5, 2, 8), *[np.linspace(-1, 1, 8)] * 2, np.linspace(0.1, 3, 8)])
    folded = fold(model)
    assert_same(model, folded)
    assert norms(folded) == 0


def test_a_norm_that_cannot_be_folded_stays() -> None:
    """Check a convolution with another user, and a norm on top of an activation."""
    image = keras.Input((8, 8, 3), name="images")
    shared = layers.Conv2D(4, 1, name="shared")(image)
    one = BatchRenorm(name="one")(shared)
    two = BatchRenorm(name="two")(layers.ReLU(name="relu")(shared))
    model = keras.Model(image, layers.Add(name="sum")([one, two]))
    settle(model, seed=0)
    folded = fold(model)
    assert norms(folded) == 2
    assert_same(model, folded)


def test_the_output_can_be_a_convolution() -> None:
    image = keras.Input((8, 8, 3), name="images")
    model = keras.Model(image, layers.Conv2D(4, 3, name="only")(image))
    assert_same(model, fold(model))
