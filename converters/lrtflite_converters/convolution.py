"""Turn a Keras convolution and its Batch Renorm into a unit, or raise an error that names it."""

from __future__ import annotations

from typing import Any

import tf_keras as keras

from lrtflite.errors import ModelError
from lrtflite_converters.blocks.unit import Unit
from lrtflite_converters.differentiable import Activation
from lrtflite_converters.window import Edges


def unit_of(
    convolution: Any,
    norm: Any,
    activation: Activation,
    *,
    name: str,
    padding: Any,
    train_depthwise: bool,
) -> Unit:
    """Return the unit called `name`; `padding` is that of the ZeroPadding2D below it, or None."""
    depthwise = isinstance(convolution, keras.layers.DepthwiseConv2D)
    kernel = convolution.depthwise_kernel if depthwise else convolution.kernel
    side, stride = int(kernel.shape[0]), int(convolution.strides[0])
    _check_plain(convolution, depthwise=depthwise, padded=padding is not None)
    if padding is not None and max(max(pair) for pair in padding) >= side:
        raise ModelError(
            f"Expected at most {side - 1} rows of zeros before a {side}x{side} convolution, "
            f"got {padding} before {describe(convolution)}; pad less"
        )
    edges: Edges = padding
    if padding is None and convolution.padding == "valid" and side > 1:
        edges = ((0, 0), (0, 0))
    arrays = {
        "kernel": kernel.numpy(),
        "gamma": norm.gamma.numpy(),
        "beta": norm.beta.numpy(),
        "mean": norm.moving_mean.numpy(),
        "variance": norm.moving_variance.numpy(),
    }
    kind = "depthwise" if depthwise else "convolution"
    if not depthwise and side == 1 and stride == 1 and padding is None:
        kind, arrays["kernel"] = "pointwise", arrays["kernel"][0]
    return Unit(
        name=name,
        kind=kind,
        image=_image(convolution, padding),
        output=tuple(convolution.output_shape[1:]),
        stride=stride,
        edges=edges,
        activation=activation,
        epsilon=norm.epsilon,
        trains_kernel=train_depthwise or not depthwise,
        arrays=arrays,
    )


def describe(layer: Any) -> str:
    """Return the name and the type of a layer, for messages."""
    return f"{layer.name} ({type(layer).__name__})"


def _check_plain(convolution: Any, *, depthwise: bool, padded: bool) -> None:
    kernel = convolution.depthwise_kernel if depthwise else convolution.kernel
    stride = convolution.strides[0]
    plain = (
        not convolution.use_bias
        and convolution.strides == (stride, stride)
        and tuple(convolution.dilation_rate) == (1, 1)
        and convolution.groups == 1
        and convolution.activation is keras.activations.linear
        and kernel.shape[0] == kernel.shape[1]
        and (not depthwise or convolution.depth_multiplier == 1)
        and (not padded or convolution.padding == "valid")
    )
    if not plain:
        raise ModelError(
            "Expected a square convolution without bias, dilation, groups or activation, "
            f"got {describe(convolution)}; build the network without them"
        )


def _image(convolution: Any, padding: Any) -> tuple[int, ...]:
    """Return the shape of the input, before the padding."""
    _, height, width, channels = convolution.input_shape
    if padding is not None:
        (top, bottom), (left, right) = padding
        height, width = height - top - bottom, width - left - right
    return height, width, channels
