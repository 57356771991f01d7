"""Build the layers that have weights: convolutions, dense layers, norms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tf_keras as keras

from lrtflite.errors import ModelError
from lrtflite.host.batch_renorm import BatchRenorm
from lrtflite_converters.keras_models.building import (
    Builder,
    image_of,
    inner_name,
    options_of,
    weights_of,
)
from lrtflite_converters.keras_models.graph import Node

layers = keras.layers
# Options of every convolution.
CONVOLUTION = ("strides", "padding", "dilation_rate")


def build_conv2d(builder: Builder, node: Node, inputs: Sequence[Any]) -> Any:
    (x,) = inputs
    channels, filters = image_of(node, x)[2], int(node.config["filters"])
    groups, side = int(node.config.get("groups") or 1), node.config["kernel_size"]
    bias = (filters,) if node.config["use_bias"] else None
    weights = weights_of(node, (*side, channels // groups, filters), bias)
    layer = layers.Conv2D(
        filters,
        tuple(side),
        use_bias=bias is not None,
        name=inner_name(node, "conv"),
        groups=groups,
        **options_of(node, *CONVOLUTION),
    )
    return builder.finish(layer, x, node, weights)


def build_depthwise(builder: Builder, node: Node, inputs: Sequence[Any]) -> Any:
    (x,) = inputs
    channels, side = image_of(node, x)[2], node.config["kernel_size"]
    times = int(node.config.get("depth_multiplier") or 1)
    bias = (channels * times,) if node.config["use_bias"] else None
    weights = weights_of(node, (*side, channels, times), bias)
    layer = layers.DepthwiseConv2D(
        tuple(side),
        depth_multiplier=times,
        use_bias=bias is not None,
        name=inner_name(node, "conv"),
        **options_of(node, *CONVOLUTION),
    )
    return builder.finish(layer, x, node, weights)


def build_separable(builder: Builder, node: Node, inputs: Sequence[Any]) -> Any:
    (x,) = inputs
    channels, side = image_of(node, x)[2], node.config["kernel_size"]
    times, filters = int(node.config.get("depth_multiplier") or 1), int(node.config["filters"])
    bias = (filters,) if node.config["use_bias"] else None
    pointwise = (1, 1, channels * times, filters)
    first, *rest = weights_of(node, (*side, channels, times), pointwise, bias)
    depthwise = layers.DepthwiseConv2D(
        tuple(side),
        depth_multiplier=times,
        use_bias=False,
        name=f"{node.name}/depthwise",
        **options_of(node, *CONVOLUTION),
    )
    x = depthwise(x)
    depthwise.set_weights([first])
    name = inner_name(node, "pointwise")
    layer = layers.Conv2D(filters, 1, use_bias=bias is not None, name=name)
    return builder.finish(layer, x, node, rest)


def build_transposed(builder: Builder, node: Node, inputs: Sequence[Any]) -> Any:
    (x,) = inputs
    channels, filters = image_of(node, x)[2], int(node.config["filters"])
    side, bias = node.config["kernel_size"], (filters,) if node.config["use_bias"] else None
    weights = weights_of(node, (*side, filters, channels), bias)
    layer = layers.Conv2DTranspose(
        filters,
        tuple(side),
        use_bias=bias is not None,
        name=inner_name(node, "conv"),
        **options_of(node, *CONVOLUTION, "output_padding"),
    )
    return builder.finish(layer, x, node, weights)


def build_dense(builder: Builder, node: Node, inputs: Sequence[Any]) -> Any:
    (x,) = inputs
    units = int(node.config["units"])
    bias = (units,) if node.config["use_bias"] else None
    weights = weights_of(node, (int(x.shape[-1]), units), bias)
    name, has_bias = inner_name(node, "dense"), bias is not None
    if len(x.shape) == 4:  # for each pixel, a 1x1 convolution
        weights[0] = weights[0][np.newaxis, np.newaxis]
        return builder.finish(
            layers.Conv2D(units, 1, use_bias=has_bias, name=name), x, node, weights
        )
    return builder.finish(layers.Dense(units, use_bias=has_bias, name=name), x, node, weights)


def build_batch_norm(builder: Builder, node: Node, inputs: Sequence[Any]) -> Any:
    (x,) = inputs
    axis, rank = node.config.get("axis", -1), len(x.shape)
    if (axis[0] if isinstance(axis, list) and len(axis) == 1 else axis) not in (-1, rank - 1):
        raise ValueError(f"an axis of {axis}")
    return _renorm(x, node, node.config.get("center", True), node.config.get("scale", True))


def build_batch_renorm(builder: Builder, node: Node, inputs: Sequence[Any]) -> Any:
    # Its last three weights are scalars, the limits of training.
    kept = Node(node.name, node.kind, node.config, node.weights[:4], node.inputs)
    return _renorm(inputs[0], kept, True, True)


def _renorm(x: Any, node: Node, center: bool, scale: bool) -> Any:
    shape = (int(x.shape[-1]),)
    found = weights_of(node, shape if scale else None, shape if center else None, shape, shape)
    gamma = found.pop(0) if scale else np.ones(shape)
    beta = found.pop(0) if center else np.zeros(shape)
    if (found[1] < 0).any():
        raise ModelError(
            f"Expected variances of at least 0, got less in {node}", "train the model again"
        )
    layer = BatchRenorm(epsilon=float(node.config.get("epsilon", 1e-3)), name=node.name)
    y = layer(x)
    variables = (layer.gamma, layer.beta, layer.moving_mean, layer.moving_variance)
    for variable, value in zip(variables, (gamma, beta, *found)):
        variable.assign(value)
    return y


def build_layer_norm(builder: Builder, node: Node, inputs: Sequence[Any]) -> Any:
    (x,) = inputs
    shape, config = (int(x.shape[-1]),), node.config
    axis = config.get("axis", -1)
    if (axis[0] if isinstance(axis, list) and len(axis) == 1 else axis) not in (
        -1,
        len(x.shape) - 1,
    ):
        raise ValueError(f"an axis of {axis}")
    scale, center = config.get("scale", True), config.get("center", True)
    weights = weights_of(node, shape if scale else None, shape if center else None)
    options = options_of(node, "epsilon", "scale", "center")
    return builder.finish(layers.LayerNormalization(name=node.name, **options), x, node, weights)


def build_prelu(builder: Builder, node: Node, inputs: Sequence[Any]) -> Any:
    (x,) = inputs
    shared = node.config.get("shared_axes") or []
    shape = tuple(1 if i in shared else int(n) for i, n in enumerate(x.shape) if i)
    layer = layers.PReLU(shared_axes=shared or None, name=node.name)
    return builder.finish(layer, x, node, weights_of(node, shape))
