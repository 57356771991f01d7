"""Layers at which a network can be split, and layers that are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tf_keras as keras

from keras_reference import as_network, small_network
from lrtflite.errors import InputError, ModelError
from lrtflite.host.batch_renorm import BatchRenorm
from lrtflite.host.network import Network
from lrtflite.networks.mobilenet_v1 import REPLAY_LAYERS, check_replay_layer
from lrtflite.replay.policies import POLICIES
from lrtflite_converters.blocks.block import Chain
from lrtflite_converters.blocks.joined import Joined
from lrtflite_converters.blocks.pooling import Pooling
from lrtflite_converters.blocks.split import blocks_above, blocks_below
from lrtflite_converters.blocks.unit import Unit
from lrtflite_converters.features.latent_range import latent_range
from lrtflite_converters.request.options import Conversion

layers = keras.layers


def names_of(chain: Chain) -> list[str]:
    return [block.name for block in chain.blocks if isinstance(block, Unit)]


def test_every_layer_splits_the_network_in_two() -> None:
    network = small_network(seed=0, input_size=32)
    between = REPLAY_LAYERS[1:-1]
    for replay_layer in REPLAY_LAYERS:
        above = blocks_above(network, replay_layer, train_depthwise=True)
        assert names_of(above) == list(between[REPLAY_LAYERS.index(replay_layer) :])
        below = blocks_below(network, replay_layer)
        assert names_of(below) + names_of(above) == list(between)
        blocks = below.blocks + above.blocks
        assert [type(block) for block in blocks] == [*[Unit] * len(between), Pooling]
        shape = tuple(network.layer(replay_layer).output.shape[1:])
        assert above.image == below.output == shape
        assert above.output == (network.features(),)
        # The input of each block is the output of the one below it.
        for lower, upper in zip(blocks, blocks[1:]):
            assert upper.image == lower.output


def test_what_a_layer_can_give() -> None:
    clipped = small_network(seed=0, input_size=32)
    assert latent_range(clipped, "images") == (0, 255)
    for layer in ("conv1", "conv5_4/dw", "conv6/sep", "pool6"):
        assert latent_range(clipped, layer) == (0, 6)
    plain = small_network(seed=0, input_size=32, activation="relu")
    for layer, unit in (("conv5_4/dw", "conv5_4/dw"), ("pool6", "conv6/sep")):
        norm = plain.layer(f"{unit}/brn")
        norm.gamma.assign([-2.0, 0.5] + [0.25] * (norm.gamma.shape[0] - 2))
        norm.beta.assign([1.0, 50.0] + [0.0] * (norm.beta.shape[0] - 2))
        # 64 standard deviations: 1 + 64 * 2 in the first channel, 50 + 64 / 2 in the second.
        assert latent_range(plain, layer) == (0, 129)


def network(upper: Callable[[Any], Any]) -> Network:
    """Return a network of a unit called `below`, the layers of `upper`, and pooling."""
    images = keras.Input((8, 8, 3), name="images")
    x = layers.Conv2D(4, 1, use_bias=False)(images)
    x = layers.ReLU(6.0, name="below")(BatchRenorm()(x))
    pooled = layers.GlobalAveragePooling2D(name="pool6")(upper(x))
    return as_network(keras.Model(images, pooled))


def unit(x: Any, *, last: str = "unit", **convolution: Any) -> Any:
    options = {"filters": 4, "kernel_size": 1, "use_bias": False, "name": "odd", **convolution}
    return layers.ReLU(name=last)(BatchRenorm()(layers.Conv2D(**options)(x)))


def another(x: Any) -> Any:
    return unit(x, last="another", name="even")


def add(*paths: Any) -> Any:
    return layers.Add(name="sum")(list(paths))


@pytest.mark.parametrize(
    ("upper", "message"),
    [
        (
            lambda x: layers.LeakyReLU(name="odd")(x),
            r"\(Conv2D, .*Flatten\), got odd \(LeakyReLU\)",
        ),
        (lambda x: layers.BatchNormalization(name="odd")(x), r"odd \(BatchNormalization\)"),
        (lambda x: layers.Dropout(0.5, name="odd")(x), r"odd \(Dropout\)"),
        (lambda x: add(x, unit(x), another(x)), r"at one layer, got sum \(Add\) of other paths"),
        (lambda x: add(x, layers.Dropout(0.5)(unit(x))), r"got dropout\w* \(Dropout\)"),
        (lambda x: add(x, unit(x, filters=1)), r"of the same shape .* got sum \(Add\)"),
        (lambda x: layers.Multiply(name="product")([x, unit(x)]), r"got product \(Multiply\)"),
        (lambda x: layers.Conv2DTranspose(4, 1, name="odd")(x), r"odd \(Conv2DTranspose\)"),
        (lambda x: unit(x, kernel_size=3, dilation_rate=2), r"dilation.*got odd"),
        (lambda x: unit(x, groups=2), r"groups.*got odd"),
        (
            lambda x: unit(layers.ZeroPadding2D(((0, 3), (0, 3)))(x), kernel_size=3),
            r"at most 2 rows of zeros .* got \(\(0, 3\), \(0, 3\)\) before odd",
        ),
        (lambda x: unit(x, activation="relu"), r"activation.*got odd"),
        (
            lambda x: layers.ReLU(4.0, name="odd")(BatchRenorm()(x)),
            "Expected ReLU or ReLU6, got odd",
        ),
        (
            lambda x: layers.ReLU(4.0, name="odd")(
                BatchRenorm()(layers.Conv2D(4, 1, use_bias=False)(x))
            ),
            "Expected ReLU or ReLU6, got odd",
        ),
    ],
)
def test_layers_that_cannot_train_are_named(upper: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        blocks_above(network(upper), "below", train_depthwise=True)


def test_a_plain_unit_can_train() -> None:
    found, _ = blocks_above(network(unit), "below", train_depthwise=True).blocks
    assert isinstance(found, Unit)
    assert (found.name, found.kind, found.output) == ("unit", "pointwise", (8, 8, 4))


@pytest.mark.parametrize("upper", [lambda x: add(x, unit(x)), lambda x: add(unit(x), x)])
def test_a_layer_and_what_a_unit_makes_of_it_can_be_added(upper: Callable[[Any], Any]) -> None:
    found, _ = blocks_above(network(upper), "below", train_depthwise=True).blocks
    assert isinstance(found, Joined)
    assert names_of(found.right) == ["unit"]
    assert (found.image, found.output) == ((8, 8, 4), (8, 8, 4))


def test_a_replay_layer_that_a_sum_passes_by_is_refused() -> None:
    """Latents of the unit do not contain the other path of the sum."""
    with pytest.raises(ModelError, match="begins at unit, got a path around it"):
        blocks_above(network(lambda x: add(x, unit(x))), "unit", train_depthwise=True)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("conv5_4/sep/brn", "inside one; choose 'conv5_4/sep'"),
        ("conv5_4/dw/conv", "inside one; choose 'conv5_4/dw'"),
        ("conv1/conv", "choose 'conv1'"),
        ("conv_dw_10_bn", "inside one; choose 'conv5_4/dw'"),
        ("conv_dw_10_relu", "by the paper's name, got 'conv_dw_10_relu'; choose 'conv5_4/dw'"),
        ("fc7", "below the classifier"),
        ("conv5_7/dw", "got 'conv5_7/dw'; did you mean 'conv5_6/dw'"),
        ("mixed_7", r"of images, conv1, .*pool6, got 'mixed_7'"),
        ("conv5_4", "got 'conv5_4'; did you mean 'conv5_4/dw' or 'conv5_4/sep'"),
    ],
)
def test_names_that_are_no_replay_layer(name: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        check_replay_layer(name)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 1}, "at least 2 below conv6/sep"),
        ({"adapt_moments": True, "new_per_batch": 1}, "at least 2 new patterns"),
        ({"adapt_moments": True, "replay_layer": "images"}, "leave --adapt-moments out"),
        ({"train_depthwise": False, "replay_layer": "conv6/sep"}, "no --freeze-depthwise"),
    ],
)
def test_options_that_cannot_work(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        Conversion(**{"replay_layer": "conv5_4/dw", **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rates": {"lr": float("nan")}}, "lr as a number .* got nan"),
        ({"rates": {"trunk_lr": -1.0}}, "trunk_lr as a number .* got -1"),
        ({"rates": {"epochs": 0}}, "epochs .* got 0"),
        ({"rates": {"r_max": 0.5}}, "r_max as a number from 1 to .* got 0.5"),
        ({"rates": {"trunk_rl": 0.1}}, "got 'trunk_rl'; did you mean 'trunk_lr'"),
        (
            {"rates": {"trunk_lr": 0.1}, "replay_layer": "pool6"},
            "of epochs, least_steps, most_steps, extra_steps, enough_loss, lr, momentum, "
            "weight_decay, head_start, got 'trunk_lr'",
        ),
        ({"rates": {"adapt_rate": 0.1}}, "got 'adapt_rate'"),
        ({"replay_size": -5}, "replay_size as a whole number .* got -5"),
        ({"policy": "x"}, f"a policy of {', '.join(POLICIES)}, got 'x'"),
    ],
)
def test_values_that_no_session_could_have(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Conversion(**{"replay_layer": "conv5_4/dw", **options})
