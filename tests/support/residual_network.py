"""A small network with residual joins, for tests of blocks and of exported models."""

from __future__ import annotations

from typing import Any

import tf_keras as keras

from keras_reference import settle
from lrtflite.host.batch_renorm import BatchRenorm
from lrtflite.host.mobilenet import scale_frames
from lrtflite.host.network import Network
from lrtflite.networks.architecture import Architecture

layers = keras.layers
SIZE = 16
ARCHITECTURE = Architecture(
    name="residual",
    title="A test with residual joins",
    replay_layers=("images", "stem", "join1", "top", "join2", "pool"),
    classifier="classifier",
    resting_layers=("pool",),
    lowest_quick="images",
    build="",
)


def unit(x: Any, name: str, convolution: Any, *, linear: bool = False) -> Any:
    x = BatchRenorm(name=name if linear else f"{name}/brn")(convolution(x))
    return x if linear else layers.ReLU(6.0, name=name)(x)


def pointwise(name: str, filters: int) -> Any:
    return layers.Conv2D(filters, 1, use_bias=False, name=f"{name}/conv")


def inverted_residual(x: Any, number: int) -> Any:
    """Return a block of MobileNetV2: expand, depthwise, projection without an activation."""
    channels, names = x.shape[-1], [f"{part}{number}" for part in ("expand", "dw", "project")]
    depthwise = layers.DepthwiseConv2D(3, padding="same", use_bias=False, name=f"{names[1]}/conv")
    y = unit(x, names[0], pointwise(names[0], 3 * channels))
    y = unit(y, names[1], depthwise)
    y = unit(y, names[2], pointwise(names[2], channels), linear=True)
    return layers.Add(name=f"join{number}")([x, y])


def make_network(seed: int) -> Network:
    """Return a network: a unit, a residual block, a unit, two residual blocks, and pooling."""
    keras.utils.set_random_seed(seed)
    images = keras.Input((SIZE, SIZE, 3), name="images")
    stem = layers.Conv2D(6, 3, strides=2, padding="same", use_bias=False, name="stem/conv")
    x = inverted_residual(unit(images, "stem", stem), 1)
    x = inverted_residual(unit(x, "top", pointwise("top", 8)), 2)
    x = inverted_residual(x, 3)
    model = keras.Model(images, layers.GlobalAveragePooling2D(name="pool")(x))
    settle(model, seed=seed)
    return Network(ARCHITECTURE, model, scale_frames, "a test")
