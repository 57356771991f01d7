"""Latents that are the average of a layer, and where closed forms are refused."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import tf_keras as keras

from keras_reference import small_network
from lrtflite.errors import ModelError
from lrtflite.host.network import Network
from lrtflite.networks.mobilenet_v1 import REPLAY_LAYERS
from lrtflite_converters.blocks.split import blocks_below
from lrtflite_converters.conversion.writing import split_network
from lrtflite_converters.features.features import AdaptingFeatures, Features
from lrtflite_converters.request.options import Conversion

RESTING = ("conv6/sep", "pool6")
CLOSED_FORMS = ("lda", "ncm")


@cache
def network() -> Network:
    return small_network(seed=0, input_size=48)


@pytest.mark.parametrize("strategy", ["dslda", "ncm"])
@pytest.mark.parametrize("layer", REPLAY_LAYERS)
def test_closed_forms_are_refused_where_a_trunk_would_train(layer: str, strategy: str) -> None:
    if layer in RESTING:
        assert Conversion(replay_layer=layer, strategy=strategy).strategy_name == strategy
        return
    message = f"the strategy '{strategy}' at conv6/sep or pool6, got the replay layer '{layer}'"
    with pytest.raises(ModelError, match=message):
        Conversion(replay_layer=layer, strategy=strategy)


@pytest.mark.parametrize("strategy", [None, "cwr", *CLOSED_FORMS])
@pytest.mark.parametrize("layer", REPLAY_LAYERS)
def test_every_layer_between_the_frames_and_pool6_can_be_pooled(
    layer: str, strategy: str | None
) -> None:
    if layer not in ("images", "pool6"):
        options = Conversion(replay_layer=layer, strategy=strategy, pooled=True)
        assert options.strategy_name == (strategy or "cwr")
        return
    message = f"between images and pool6 with --pooled, got '{layer}'; leave --pooled out"
    with pytest.raises(ModelError, match=message):
        Conversion(replay_layer=layer, strategy=strategy, pooled=True)


def test_nothing_is_left_to_train_above_an_average() -> None:
    with pytest.raises(ModelError, match="no --pooled with the strategy 'ar1free'"):
        Conversion(replay_layer="conv5_6/sep", strategy="ar1free", pooled=True)


@pytest.mark.parametrize("adapts", [False, True])
@pytest.mark.parametrize("strategy", ["cwr", *CLOSED_FORMS])
@pytest.mark.parametrize("layer", ["conv5_6/sep", "conv4_1/dw"])
def test_pooled_latents_are_the_average_of_the_layer(
    layer: str, strategy: str, adapts: bool
) -> None:
    options = Conversion(
        replay_layer=layer, strategy=strategy, pooled=True, classes=3, adapt_moments=adapts
    )
    parts = split_network(network(), options)
    frames = np.random.default_rng(0).integers(0, 256, (3, 48, 48, 3)).astype(np.uint8)
    found = parts.features.run("extract", frames=frames)["latents"]
    # The same layers without the average: rounding through 23 layers is not the average's fault.
    maps = unpooled(layer, adapts).run("extract", frames=frames)["latents"]
    assert maps.ndim == 4
    expected = keras.layers.GlobalAveragePooling2D()(maps).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-5 * expected.max())
    below = keras.Model(network().model.input, network().layer(layer).output)
    by_keras = below(network().scale(frames)).numpy().astype(float).mean(axis=(1, 2))
    np.testing.assert_allclose(found, by_keras, rtol=1e-3, atol=1e-3)
    assert parts.features.latent_shape == expected.shape[1:]
    assert not parts.head.trunk.trains
    # The head takes them as they are.
    assert parts.head.signatures["infer"].inputs["latents"].shape == (-1, *expected.shape[1:])
    assert ("adapt" in parts.features.signatures) == adapts


def unpooled(layer: str, adapts: bool) -> Features:
    if not adapts:
        return Features(network(), layer)
    return AdaptingFeatures(network(), layer, blocks_below(network(), layer), group=4)
