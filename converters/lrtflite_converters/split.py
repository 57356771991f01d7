"""Split a network at a replay layer: what makes latents below it, what trains above it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tf_keras as keras

from lrtflite.errors import ModelError
from lrtflite.host.batch_renorm import BatchRenorm
from lrtflite_converters import differentiable as ops
from lrtflite_converters.differentiable import Activation
from lrtflite_converters.unit import Unit
from lrtflite_converters.window import Edges

# What a unit is made of; every other layer has no gradient of built-in ops.
UNIT_LAYERS = (
    keras.layers.ZeroPadding2D,
    keras.layers.Conv2D,
    keras.layers.DepthwiseConv2D,
    BatchRenorm,
    keras.layers.ReLU,
)
# Standard deviations beyond which no value of a plain ReLU layer is believed. The most seen was 39:
# ImageNet weights with ReLU in place of ReLU6, on photographs, noise and checkerboards.
MOST_DEVIATIONS = 64


def below(model: keras.Model, replay_layer: str) -> keras.Model:
    """The part of the network from its input to the output of the replay layer."""
    return keras.Model(model.input, find_layer(model, replay_layer).output, name="below")


def units_below(model: keras.Model, replay_layer: str) -> list[Unit]:
    """The units that make latents, without the pooling that `pool6` is."""
    layers = _chain(model, "images", replay_layer)
    return _units(layers[:-1] if replay_layer == "pool6" else layers, train_depthwise=False)


def units_above(model: keras.Model, replay_layer: str, *, train_depthwise: bool) -> list[Unit]:
    """The units that train, up to `pool6`; none where `pool6` itself is replayed."""
    if replay_layer == "pool6":
        return []
    *layers, pool = _chain(model, replay_layer, "pool6")
    if not isinstance(pool, keras.layers.GlobalAveragePooling2D):
        raise ModelError(f"Expected global average pooling at pool6, got {_describe(pool)}")
    return _units(layers, train_depthwise=train_depthwise)


def latent_range(model: keras.Model, replay_layer: str) -> tuple[float, float]:
    """The least and the greatest value that a latent can hold: 0 to 6 after ReLU6.

    A plain ReLU has no upper limit, so the normalised values of its Batch Renorm are limited to
    MOST_DEVIATIONS.
    """
    if replay_layer == "images":
        return 0.0, 255.0
    layers = _chain(model, "images", replay_layer)
    activation = layers[-2] if replay_layer == "pool6" else layers[-1]
    norm = layers[layers.index(activation) - 1]
    if activation.max_value is not None:
        return 0.0, float(activation.max_value)
    gamma, beta = norm.gamma.numpy(), norm.beta.numpy()
    return 0.0, float(np.max(beta + MOST_DEVIATIONS * np.abs(gamma)))


def find_layer(model: keras.Model, name: str) -> Any:
    try:
        return model.get_layer(name)
    except ValueError as error:
        raise ModelError(
            f"Expected a model with a layer {name!r}, got {model.name!r} without it; "
            "use a model that `lrtflite train` saved"
        ) from error


def _chain(model: keras.Model, first: str, last: str) -> list[Any]:
    """The layers after `first` up to `last`, each fed by the one before and by nothing else."""
    start, end = (model.layers.index(find_layer(model, name)) for name in (first, last))
    layers = model.layers[start : end + 1]
    for one, other in zip(layers, layers[1:]):
        if other.input is not one.output:
            raise ModelError(
                f"Expected a chain of layers from {first} to {last}, "
                f"got {_describe(other)}, which {one.name} does not feed alone"
            )
    return layers[1:]


def _units(layers: Sequence[Any], *, train_depthwise: bool) -> list[Unit]:
    for layer in layers:
        if type(layer) not in UNIT_LAYERS:  # a subclass may compute something else
            supported = ", ".join(kind.__name__ for kind in UNIT_LAYERS)
            raise ModelError(
                f"Expected layers that train with built-in ops ({supported}), "
                f"got {_describe(layer)}; replay a layer above it, without --adapt-moments"
            )
    found = []
    remaining = list(layers)
    while remaining:
        padding = None
        if isinstance(remaining[0], keras.layers.ZeroPadding2D):
            padding = remaining.pop(0).padding
        unit, remaining = remaining[:3], remaining[3:]
        kinds = [
            (keras.layers.Conv2D, keras.layers.DepthwiseConv2D),
            BatchRenorm,
            keras.layers.ReLU,
        ]
        if len(unit) < 3 or not all(map(isinstance, unit, kinds)):
            names = ", ".join(_describe(layer) for layer in unit)
            raise ModelError(
                f"Expected a convolution, BatchRenorm and ReLU in turn, got {names}; "
                "build the network of such units, as `lrtflite train` does"
            )
        found.append(_unit(*unit, padding=padding, train_depthwise=train_depthwise))
    return found


def _unit(
    convolution: Any, norm: Any, activation: Any, *, padding: Any, train_depthwise: bool
) -> Unit:
    depthwise = isinstance(convolution, keras.layers.DepthwiseConv2D)
    kernel = convolution.depthwise_kernel if depthwise else convolution.kernel
    height, width = kernel.shape[:2]
    stride = convolution.strides[0]
    plain = (
        not convolution.use_bias
        and convolution.strides == (stride, stride)
        and tuple(convolution.dilation_rate) == (1, 1)
        and convolution.groups == 1
        and convolution.activation is keras.activations.linear
        and height == width
        and (not depthwise or convolution.depth_multiplier == 1)
        and (padding is None or convolution.padding == "valid")
    )
    if not plain:
        raise ModelError(
            "Expected a square convolution without bias, dilation, groups or activation, "
            f"got {_describe(convolution)}; build the network without them"
        )
    if padding is not None and max(max(side) for side in padding) >= height:
        raise ModelError(
            f"Expected at most {height - 1} rows of zeros before a {height}x{height} convolution, "
            f"got {padding} before {_describe(convolution)}; pad less"
        )
    edges: Edges = padding
    if padding is None and convolution.padding == "valid" and height > 1:
        edges = ((0, 0), (0, 0))
    kind = "depthwise" if depthwise else "convolution"
    values = {
        "kernel": kernel.numpy(),
        "gamma": norm.gamma.numpy(),
        "beta": norm.beta.numpy(),
        "mean": norm.moving_mean.numpy(),
        "variance": norm.moving_variance.numpy(),
    }
    if not depthwise and height == 1 and stride == 1 and padding is None:
        kind, values["kernel"] = "pointwise", values["kernel"][0]
    before = convolution.input_shape
    if padding is not None:
        (top, bottom), (left, right) = padding
        before = (None, before[1] - top - bottom, before[2] - left - right, before[3])
    return Unit(
        name=activation.name,
        kind=kind,
        image=tuple(before[1:]),
        output=tuple(convolution.output_shape[1:]),
        stride=stride,
        edges=edges,
        activation=_activation(activation),
        epsilon=norm.epsilon,
        trains_kernel=train_depthwise or not depthwise,
        values=values,
    )


def _activation(layer: Any) -> Activation:
    known = {None: ops.relu, 6.0: ops.relu6}
    highest = None if layer.max_value is None else float(layer.max_value)
    if highest not in known or layer.negative_slope or layer.threshold:
        raise ModelError(f"Expected ReLU or ReLU6, got {_describe(layer)} of another shape")
    return known[highest]


def _describe(layer: Any) -> str:
    return f"{layer.name} ({type(layer).__name__})"
