"""Latents of two layers and of two crops, and where they are refused."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import tf_keras as keras

from keras_reference import small_network
from lrtflite.errors import ModelError
from lrtflite.host.network import Network
from lrtflite.networks.mobilenet_v2 import MOBILENET_V2
from lrtflite_converters.conversion.writing import split_network
from lrtflite_converters.features.crops import centre
from lrtflite_converters.features.features import Features
from lrtflite_converters.request.foreign import check_foreign
from lrtflite_converters.request.options import Conversion, ConvertOptions
from lrtflite_converters.request.strategies import STRATEGIES

SIZE = 48


@cache
def network() -> Network:
    return small_network(seed=0, input_size=SIZE)


def frames() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (3, SIZE, SIZE, 3)).astype(np.uint8)


@pytest.mark.parametrize("first", ["pool6", "conv6/sep"])
def test_a_latent_has_the_vectors_of_both_layers(first: str) -> None:
    options = Conversion(
        replay_layer=first, pooled=first != "pool6", and_layer="conv5_6/sep", classes=3
    )
    parts = split_network(network(), options)
    found = parts.features.run("extract", frames=frames())["latents"]
    outputs = [network().layer(name).output for name in ("conv6/sep", "conv5_6/sep")]
    maps = keras.Model(network().model.input, outputs)(network().scale(frames()))
    expected = np.concatenate([each.numpy().mean(axis=(1, 2)) for each in maps], axis=1)
    # Rounding passes through 27 layers of a random network.
    np.testing.assert_allclose(found, expected, atol=0.02)
    assert parts.latent_range == (0.0, 6.0)
    assert options.strategy_name == "lda"


def enlarged(image: np.ndarray) -> np.ndarray:
    """The centre of an image (48, 48, 3), enlarged by hand: 0.8 of 48 is 38, from 5 to 43."""
    square = image[5:43, 5:43].astype(float)
    at = np.clip((np.arange(SIZE) + 0.5) * 38 / SIZE - 0.5, 0, 37)
    low = np.floor(at).astype(int)
    high, share = np.minimum(low + 1, 37), at - low
    rows = square[low] * (1 - share)[:, None, None] + square[high] * share[:, None, None]
    found: np.ndarray = (
        rows[:, low] * (1 - share)[None, :, None] + rows[:, high] * share[None, :, None]
    )
    return found


def test_a_crop_is_the_centre_enlarged() -> None:
    images = frames().astype("f")
    expected = np.stack([enlarged(each) for each in images])
    np.testing.assert_allclose(centre(images), expected, atol=1e-3)


@pytest.mark.parametrize("second", [None, "conv5_6/sep"])
def test_crops_give_the_mean_of_the_whole_and_its_centre(second: str | None) -> None:
    plain = Features(network(), "pool6", second=second)
    both = Features(network(), "pool6", second=second, crops=True)
    whole = plain.run("extract", frames=frames())["latents"]
    scaled = network().scale(frames()).numpy()
    crops = np.stack([enlarged(each) for each in scaled]).astype("f")
    of_crops = plain.below(crops, training=False).numpy()
    assert np.abs(whole - of_crops).max() > 1
    found = both.run("extract", frames=frames())["latents"]
    np.testing.assert_allclose(found, (whole + of_crops) / 2, atol=0.02)


REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"and_layer": "conv5_9/sep"}, "a replay layer.*got 'conv5_9/sep'"),
    ({"and_layer": "conv5_6"}, "did you mean 'conv5_6/dw' or 'conv5_6/sep'"),
    ({"and_layer": "pool6"}, "between images and pool6 with --and, got 'pool6'"),
    ({"and_layer": "images"}, "between images and pool6 with --and, got 'images'"),
    (
        {"replay_layer": "conv5_4/sep", "pooled": True, "and_layer": "conv5_6/sep"},
        "between images and conv5_4/sep with --and, got 'conv5_6/sep'",
    ),
    (
        {"replay_layer": "conv5_6/sep", "pooled": True, "and_layer": "conv5_6/sep"},
        "between images and conv5_6/sep with --and, got 'conv5_6/sep'",
    ),
    (
        {"replay_layer": "conv5_4/dw", "strategy": "lda", "and_layer": "conv4_1/dw"},
        "--pooled or the replay layer pool6 with --and, got 'conv5_4/dw'",
    ),
    ({"and_layer": "conv5_6/sep", "adapt_moments": True}, "without --adapt-moments"),
    ({"replay_layer": "conv5_4/dw", "crops": True}, "--pooled or the replay layer pool6 with"),
    ({"crops": True, "adapt_moments": True}, "--crops without --adapt-moments"),
)


@pytest.mark.parametrize(("options", "said"), REFUSED)
def test_what_does_not_fit_is_refused_in_one_line(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ModelError, match=said) as caught:
        Conversion(**options)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "lda"])
def test_strategies_that_take_one_layer_are_refused_with_two(strategy: str) -> None:
    with pytest.raises(ModelError, match=f"the strategy lda with --and, got '{strategy}'"):
        Conversion(strategy=strategy, and_layer="conv5_6/sep")


def test_a_layer_of_another_network_is_refused() -> None:
    with pytest.raises(ModelError, match="got 'conv5_6/sep'"):
        Conversion(and_layer="conv5_6/sep", architecture=MOBILENET_V2)


@pytest.mark.parametrize("options", [{"and_layer": "x"}, {"crops": True}])
def test_a_foreign_model_has_one_layer_and_one_view(options: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match="with --features, whose output is the only layer"):
        check_foreign(ConvertOptions(**options))


def test_a_layer_without_pixels_has_no_average() -> None:
    with pytest.raises(ModelError, match="an image with --and, got 'pool6'"):
        network().output("conv6/sep", second="pool6")
