"""Turn a Keras convolution or dense layer, and its norm, into a block, or raise an error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tf_keras as keras

from lrtflite.errors import ModelError
from lrtflite_converters.blocks.biased import Biased
from lrtflite_converters.blocks.unit import Unit
from lrtflite_converters.gradients.differentiable import Activation
from lrtflite_converters.gradients.window import Edges


@dataclass(frozen=True)
class Linear:
    """A convolution or a dense layer as a block needs it, with its bias or None."""

    kind: str
    image: tuple[int, ...]
    output: tuple[int, ...]
    stride: int
    edges: Edges
    kernel: Any
    bias: Any
    trains_kernel: bool


def unit_of(linear: Linear | None, norm: Any, activation: Activation, *, name: str) -> Unit:
    """Return the unit called `name`; without `linear`, it is Batch Renorm alone.

    A bias below Batch Renorm only shifts its mean, so it becomes part of the moving mean.
    """
    arrays = {
        "gamma": norm.gamma.numpy(),
        "beta": norm.beta.numpy(),
        "mean": norm.moving_mean.numpy(),
        "variance": norm.moving_variance.numpy(),
    }
    if linear is None:
        image = tuple(int(n) for n in norm.input.shape[1:])
        linear = Linear("none", image, image, 1, None, None, None, False)
    else:
        if linear.bias is not None:
            arrays["mean"] = arrays["mean"] - linear.bias
        arrays = {"kernel": linear.kernel, **arrays}
    return Unit(
        name=name,
        kind=linear.kind,
        image=linear.image,
        output=linear.output,
        stride=linear.stride,
        edges=linear.edges,
        activation=activation,
        epsilon=norm.epsilon,
        trains_kernel=linear.trains_kernel,
        arrays=arrays,
    )


def biased_of(linear: Linear, activation: Activation, *, name: str) -> Biased:
    """Return the block of a layer without Batch Renorm, called `name`."""
    arrays = {"kernel": linear.kernel}
    return Biased(
        name=name,
        kind=linear.kind,
        image=linear.image,
        output=linear.output,
        stride=linear.stride,
        edges=linear.edges,
        activation=activation,
        trains_kernel=linear.trains_kernel,
        arrays=arrays if linear.bias is None else {**arrays, "bias": linear.bias},
    )


def linear_of(layer: Any, *, padding: Any, train_depthwise: bool) -> Linear:
    """Return the linear part of a layer; `padding` is that of the ZeroPadding2D below, or None."""
    bias = layer.bias.numpy() if layer.use_bias else None
    if isinstance(layer, keras.layers.Dense):
        _check_dense(layer)
        kernel = layer.kernel.numpy()
        rows, columns = kernel.shape
        return Linear("dense", (rows,), (columns,), 1, None, kernel, bias, True)
    depthwise = isinstance(layer, keras.layers.DepthwiseConv2D)
    variable = layer.depthwise_kernel if depthwise else layer.kernel
    side, stride = int(variable.shape[0]), int(layer.strides[0])
    _check_plain(layer, depthwise=depthwise, padded=padding is not None)
    if padding is not None and max(max(pair) for pair in padding) >= side:
        raise ModelError(
            f"Expected at most {side - 1} rows of zeros before a {side}x{side} convolution, "
            f"got {padding} before {describe(layer)}",
            "pad less",
        )
    edges: Edges = padding
    if padding is None and layer.padding == "valid" and side > 1:
        edges = ((0, 0), (0, 0))
    kind, kernel = "depthwise" if depthwise else "convolution", variable.numpy()
    if not depthwise and side == 1 and stride == 1 and padding is None:
        kind, kernel = "pointwise", kernel[0]
    return Linear(
        kind=kind,
        image=_image(layer, padding),
        output=tuple(layer.output_shape[1:]),
        stride=stride,
        edges=edges,
        kernel=kernel,
        bias=bias,
        trains_kernel=train_depthwise or not depthwise,
    )


def describe(layer: Any) -> str:
    """Return the name and the type of a layer, for messages."""
    return f"{layer.name} ({type(layer).__name__})"


def _check_plain(convolution: Any, *, depthwise: bool, padded: bool) -> None:
    kernel = convolution.depthwise_kernel if depthwise else convolution.kernel
    stride = convolution.strides[0]
    plain = (
        convolution.strides == (stride, stride)
        and tuple(convolution.dilation_rate) == (1, 1)
        and convolution.groups == 1
        and convolution.activation is keras.activations.linear
        and kernel.shape[0] == kernel.shape[1]
        and (not depthwise or convolution.depth_multiplier == 1)
        and (not padded or convolution.padding == "valid")
    )
    if not plain:
        raise ModelError(
            "Expected a square convolution without dilation, groups or activation, "
            f"got {describe(convolution)}",
            "build the network without them",
        )


def _check_dense(layer: Any) -> None:
    if len(layer.input_shape) != 2 or layer.activation is not keras.activations.linear:
        raise ModelError(
            "Expected a dense layer on vectors, with its activation as a layer of its own, "
            f"got {describe(layer)}",
            "build the network that way",
        )


def _image(convolution: Any, padding: Any) -> tuple[int, ...]:
    """Return the shape of the input, before the padding."""
    _, height, width, channels = convolution.input_shape
    if padding is not None:
        (top, bottom), (left, right) = padding
        height, width = height - top - bottom, width - left - right
    return height, width, channels
