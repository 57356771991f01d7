"""Build tf-keras layers from the configurations of a Keras file, class by class.

The table `LAYERS` has a function for each class; a class that is not in it is refused. Nothing in a
file is imported or executed. Layers are built in a plain form, which the matchers of `split` know:
activations and biases of separable convolutions become layers of their own, Batch Normalization
becomes Batch Renorm with the same moments, and layers that do nothing in inference are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras as keras

from lrtflite.arguments import shown
from lrtflite.errors import ModelError
from lrtflite.host.batch_renorm import BatchRenorm
from lrtflite_converters.keras_graph import Node

layers = keras.layers
# Maximum number of values in the output of a layer for one frame.
MOST_VALUES = 1 << 27
# Smallest deviation that Keras's Normalization divides by.
LEAST_DEVIATION = 1e-7


@dataclass(frozen=True)
class Builder:
    """Builds layers on Keras tensors; `is_keras_3` decides between two meanings of a name."""

    is_keras_3: bool

    def build(self, node: Node, inputs: Sequence[Any]) -> Any:
        """Return the output of a layer, or raise ModelError that names it."""
        check_known(node)
        try:
            output = LAYERS[node.kind](self, node, inputs)
        except (
            ValueError,
            TypeError,
            KeyError,
            IndexError,
            AttributeError,
            OverflowError,
        ) as error:
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise ModelError(
                f"Expected a layer as Keras saves it, got {node}, which cannot be built "
                f"({first[:160]}); save the model again"
            ) from error
        values = math.prod(int(n or 0) for n in output.shape[1:])
        if not 0 < values <= MOST_VALUES:
            raise ModelError(
                f"Expected 1 to {MOST_VALUES:,} values from each layer, got {values:,} from "
                f"{node}; use a smaller model"
            )
        return output

    def activate(self, x: Any, activation: Any, name: str) -> Any:
        """Return the activation that a configuration names, as a layer called `name`."""
        if isinstance(activation, dict):  # a function of Keras, as an object
            activation = activation.get("config")
        if activation == "relu":
            return layers.ReLU(name=name)(x)
        if activation == "relu6":
            return layers.ReLU(6.0, name=name)(x)
        functions = {**ACTIVATIONS, **(KERAS_3 if self.is_keras_3 else {})}
        if not isinstance(activation, str) or activation not in functions:
            raise ModelError(
                f"Expected an activation of Keras in {name}, got {shown(activation)}; "
                "use one of its own"
            )
        return layers.Activation(functions[activation], name=name)(x)

    def finish(self, layer: Any, x: Any, node: Node, weights: Sequence[Any]) -> Any:
        """Apply a layer with its weights; the caller gave it the name of `inner_name`."""
        y = layer(x)
        layer.set_weights(list(weights))
        activation = node.config.get("activation")
        return y if _is_linear(activation) else self.activate(y, activation, node.name)


def check_known(node: Node) -> None:
    """Raise ModelError for a layer that is not in the table."""
    if node.kind in ("Lambda", "TFOpLambda", "SlicingOpLambda"):
        raise ModelError(
            f"Expected layers without code of their own, got {node}; a Lambda layer executes code "
            "from the file, so it is refused: build the model from Keras's layers"
        )
    custom = node.registered and ">" in node.registered and not node.registered.startswith("lrtf")
    if custom or node.kind not in LAYERS:
        raise ModelError(
            f"Expected layers of {', '.join(sorted(LAYERS))}, got {node}, which is a custom layer "
            "or not supported; build the model from these, or export it with --features"
        )


def is_identity(node: Node) -> bool:
    """Return whether a layer gives its input in inference."""
    if node.kind == "Activation":
        return _is_linear(node.config.get("activation"))
    return node.kind in IDENTITIES


def scaling_of(node: Node) -> tuple[Any, Any] | None:
    """Return the multiplier and the offset of a layer that scales its input, or None."""
    config = node.config
    if node.kind == "Rescaling":
        return config["scale"], config.get("offset", 0.0)
    if node.kind == "Normalization" and not config.get("invert"):
        mean, variance = config.get("mean"), config.get("variance")
        if mean is None or variance is None:
            mean, variance = (array.ravel().tolist() for array in node.weights[:2])
        means, variances = np.ravel(mean), np.ravel(variance)
        deviations = np.maximum(np.sqrt(variances), LEAST_DEVIATION)
        return (1 / deviations).tolist(), (-means / deviations).tolist()
    return None


def _is_linear(activation: Any) -> bool:
    if isinstance(activation, dict):
        activation = activation.get("config")
    return activation in (None, "linear")


def _inner_name(node: Node, part: str) -> str:
    """Return the name of a layer that an activation called `node.name` follows."""
    linear = _is_linear(node.config.get("activation"))
    return node.name if linear else f"{node.name}/{part}"


def _options(node: Node, *names: str) -> dict[str, Any]:
    """Return the options that a configuration has, with lists as tuples."""
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name in names
        if (value := node.config.get(name)) is not None
    }


def _weights(node: Node, *shapes: tuple[int, ...] | None) -> list[Any]:
    """Return the weights of a layer; None stands for a weight that it does not have."""
    wanted = [tuple(int(n) for n in shape) for shape in shapes if shape is not None]
    found = [array.shape for array in node.weights]
    if len(found) != len(wanted):
        raise ModelError(
            f"Expected {len(wanted)} arrays of weights for {node}, got {len(found)}; save the "
            "model again, with its weights"
        )
    for shape, each in zip(wanted, found):
        if shape != each:
            raise ModelError(
                f"Expected weights of shape {shape} for {node}, got {each}; these weights are of a "
                "model of another width, save model and weights together"
            )
    for array in node.weights:
        if not np.isfinite(array).all():
            raise ModelError(
                f"Expected finite weights, got NaN or infinity in {node}; train the model again "
                "with a lower learning rate"
            )
    return list(node.weights)


def _image(node: Node, x: Any) -> tuple[int, int, int]:
    if node.config.get("data_format") == "channels_first":
        raise ModelError(
            f"Expected images with channels last, got {node} with channels first; build the model "
            "with data_format='channels_last'"
        )
    if len(x.shape) != 4:
        raise ValueError(f"an input of rank {len(x.shape)}")
    _, height, width, channels = x.shape
    return int(height), int(width), int(channels)


CONVOLUTION = ("strides", "padding", "dilation_rate")


def _conv2d(builder: Builder, node: Node, inputs: Sequence[Any]) -> Any:
    (x,) = inputs
    channels, filters = _image(node, x)[2], int(node.config["filters"])
    groups, side = int(node.config.get("groups") or 1), node.config["kernel_size"]
    bias = (filters,) if node.config["use_bias"] else None
    weights = _weights(node, (*side, channels // groups, filters), bias)
    layer = layers.Conv2D(
        filters,
        tuple(side),
        use_bias=bias is not None,
        name=_inner_name(node, "conv"),
        groups=groups,
        **_options(node, *CONVOLUTION),
    )
    return builder.finish(layer, x, node, weights)


def _depthwise(builder: Builder, node: Node, inputs: Sequence[Any]) -> Any:
    (x,) = inputs
    channels, side = _image(node, x)[2], node.config["kernel_size"]
    times = int(node.config.get("depth_multiplier") or 1)
    bias = (channels * times,) if node.config["use_bias"] else None
    weights = _weights(node, (*side, channels, times), bias)
    layer = layers.DepthwiseConv2D(
        tuple(side),
        depth_multiplier=times,
        use_bias=bias is not None,
        name=_inner_name(node, "conv"),
        **_options(node, *CONVOLUTION),
    )
    return builder.finish(layer, x, node, weights)


def _separable(builder: Builder, node: Node, inputs: Sequence[Any]) -> Any:
    (x,) = inputs
    channels, side = _image(node, x)[2], node.config["kernel_size"]
    times, filters = int(node.config.get("depth_multiplier") or 1), int(node.config["filters"])
    bias = (filters,) if node.config["use_bias"] else None
    pointwise = (1, 1, channels * times, filters)
    first, *rest = _weights(node, (*side, channels, times), pointwise, bias)
    depthwise = layers.DepthwiseConv2D(
        tuple(side),
        depth_multiplier=times,
        use_bias=False,
        name=f"{node.name}/depthwise",
        **_options(node, *CONVOLUTION),
    )
    x = depthwise(x)
    depthwise.set_weights([first])
    name = _inner_name(node, "pointwise")
    layer = layers.Conv2D(filters, 1, use_bias=bias is not None, name=name)
    return builder.finish(layer, x, node, rest)


def _transposed(builder: Builder, node: Node, inputs: Sequence[Any]) -> Any:
    (x,) = inputs
    channels, filters = _image(node, x)[2], int(node.config["filters"])
    side, bias = node.config["kernel_size"], (filters,) if node.config["use_bias"] else None
    weights = _weights(node, (*side, filters, channels), bias)
    layer = layers.Conv2DTranspose(
        filters,
        tuple(side),
        use_bias=bias is not None,
        name=_inner_name(node, "conv"),
        **_options(node, *CONVOLUTION, "output_padding"),
    )
    return builder.finish(layer, x, node, weights)


def _dense(builder: Builder, node: Node, inputs: Sequence[Any]) -> Any:
    (x,) = inputs
    units = int(node.config["units"])
    bias = (units,) if node.config["use_bias"] else None
    weights = _weights(node, (int(x.shape[-1]), units), bias)
    name, has_bias = _inner_name(node, "dense"), bias is not None
    if len(x.shape) == 4:  # for each pixel, a 1x1 convolution
        weights[0] = weights[0][np.newaxis, np.newaxis]
        return builder.finish(
            layers.Conv2D(units, 1, use_bias=has_bias, name=name), x, node, weights
        )
    return builder.finish(layers.Dense(units, use_bias=has_bias, name=name), x, node, weights)


def _batch_norm(builder: Builder, node: Node, inputs: Sequence[Any]) -> Any:
    (x,) = inputs
    axis, rank = node.config.get("axis", -1), len(x.shape)
    if (axis[0] if isinstance(axis, list) and len(axis) == 1 else axis) not in (-1, rank - 1):
        raise ValueError(f"an axis of {axis}")
    return _renorm(x, node, node.config.get("center", True), node.config.get("scale", True))


def _batch_renorm(builder: Builder, node: Node, inputs: Sequence[Any]) -> Any:
    # Its last three weights are scalars, the limits of training.
    kept = Node(node.name, node.kind, node.config, node.weights[:4], node.inputs)
    return _renorm(inputs[0], kept, True, True)


def _renorm(x: Any, node: Node, center: bool, scale: bool) -> Any:
    shape = (int(x.shape[-1]),)
    found = _weights(node, shape if scale else None, shape if center else None, shape, shape)
    gamma = found.pop(0) if scale else np.ones(shape)
    beta = found.pop(0) if center else np.zeros(shape)
    if (found[1] < 0).any():
        raise ModelError(
            f"Expected variances of at least 0, got less in {node}; train the model again"
        )
    layer = BatchRenorm(epsilon=float(node.config.get("epsilon", 1e-3)), name=node.name)
    y = layer(x)
    variables = (layer.gamma, layer.beta, layer.moving_mean, layer.moving_variance)
    for variable, value in zip(variables, (gamma, beta, *found)):
        variable.assign(value)
    return y


def _layer_norm(builder: Builder, node: Node, inputs: Sequence[Any]) -> Any:
    (x,) = inputs
    shape, config = (int(x.shape[-1]),), node.config
    axis = config.get("axis", -1)
    if (axis[0] if isinstance(axis, list) and len(axis) == 1 else axis) not in (
        -1,
        len(x.shape) - 1,
    ):
        raise ValueError(f"an axis of {axis}")
    scale, center = config.get("scale", True), config.get("center", True)
    weights = _weights(node, shape if scale else None, shape if center else None)
    options = _options(node, "epsilon", "scale", "center")
    return builder.finish(layers.LayerNormalization(name=node.name, **options), x, node, weights)


def _prelu(builder: Builder, node: Node, inputs: Sequence[Any]) -> Any:
    (x,) = inputs
    shared = node.config.get("shared_axes") or []
    shape = tuple(1 if i in shared else int(n) for i, n in enumerate(x.shape) if i)
    layer = layers.PReLU(shared_axes=shared or None, name=node.name)
    return builder.finish(layer, x, node, _weights(node, shape))


def _leaky(builder: Builder, node: Node, inputs: Sequence[Any]) -> Any:
    slope = node.config.get("negative_slope", node.config.get("alpha", 0.3))
    return layers.LeakyReLU(float(slope), name=node.name)(inputs[0])


def _activation(builder: Builder, node: Node, inputs: Sequence[Any]) -> Any:
    return builder.activate(inputs[0], node.config["activation"], node.name)


def _rescale(builder: Builder, node: Node, inputs: Sequence[Any]) -> Any:
    found = scaling_of(node)
    if found is None:
        raise ValueError("an inverted Normalization")
    scale, offset = (np.asarray(each, np.float32) for each in found)
    return layers.Activation(lambda x: x * scale + offset, name=node.name)(inputs[0])


def _global_average(builder: Builder, node: Node, inputs: Sequence[Any]) -> Any:
    return _global(layers.GlobalAveragePooling2D, node, inputs[0])


def _global_maximum(builder: Builder, node: Node, inputs: Sequence[Any]) -> Any:
    return _global(layers.GlobalMaxPooling2D, node, inputs[0])


def _global(kind: Any, node: Node, x: Any) -> Any:
    channels = _image(node, x)[2]
    if not node.config.get("keepdims"):
        return kind(name=node.name)(x)
    return layers.Reshape((1, 1, channels), name=node.name)(kind(name=f"{node.name}/pool")(x))


def _simple(kind: Any, *names: str) -> LayerBuilder:
    """Return a builder for a layer without weights, from the named options."""

    def build(builder: Builder, node: Node, inputs: Sequence[Any]) -> Any:
        if "data_format" in node.config:
            _image(node, inputs[0])
        x = list(inputs) if len(inputs) > 1 else inputs[0]
        return kind(name=node.name, **_options(node, *names))(x)

    return build


def _flatten(builder: Builder, node: Node, inputs: Sequence[Any]) -> Any:
    return layers.Flatten(name=node.name)(inputs[0])


def _nothing(builder: Builder, node: Node, inputs: Sequence[Any]) -> Any:
    return inputs[0]


def _relu6(x: Any) -> Any:
    return tf.nn.relu6(x + 3.0) / 6.0


LayerBuilder = Callable[[Builder, Node, Sequence[Any]], Any]
# Layers that do nothing in inference.
IDENTITIES = (
    "ActivityRegularization",
    "AlphaDropout",
    "Dropout",
    "GaussianDropout",
    "GaussianNoise",
    "Identity",
    "RandomBrightness",
    "RandomContrast",
    "RandomFlip",
    "RandomRotation",
    "RandomTranslation",
    "RandomZoom",
    "SpatialDropout2D",
)
WINDOW = ("pool_size", "strides", "padding")
# Builder of each class of layers.
LAYERS: dict[str, LayerBuilder] = {
    "Activation": _activation,
    "Add": _simple(layers.Add),
    "Average": _simple(layers.Average),
    "AveragePooling2D": _simple(layers.AveragePooling2D, *WINDOW),
    "BatchNormalization": _batch_norm,
    "BatchRenorm": _batch_renorm,
    "Concatenate": _simple(layers.Concatenate, "axis"),
    "Conv2D": _conv2d,
    "Conv2DTranspose": _transposed,
    "Cropping2D": _simple(layers.Cropping2D, "cropping"),
    "Dense": _dense,
    "DepthwiseConv2D": _depthwise,
    "ELU": _simple(layers.ELU, "alpha"),
    "Flatten": _flatten,
    "GlobalAveragePooling2D": _global_average,
    "GlobalMaxPooling2D": _global_maximum,
    "LayerNormalization": _layer_norm,
    "LeakyReLU": _leaky,
    "MaxPooling2D": _simple(layers.MaxPooling2D, *WINDOW),
    "Maximum": _simple(layers.Maximum),
    "Minimum": _simple(layers.Minimum),
    "Multiply": _simple(layers.Multiply),
    "Normalization": _rescale,
    "PReLU": _prelu,
    "Permute": _simple(layers.Permute, "dims"),
    "ReLU": _simple(layers.ReLU, "max_value", "negative_slope", "threshold"),
    "Rescaling": _rescale,
    "Reshape": _simple(layers.Reshape, "target_shape"),
    "SeparableConv2D": _separable,
    "Softmax": _simple(layers.Softmax, "axis"),
    "Subtract": _simple(layers.Subtract),
    "UpSampling2D": _simple(layers.UpSampling2D, "size", "interpolation"),
    "ZeroPadding2D": _simple(layers.ZeroPadding2D, "padding"),
    **dict.fromkeys(IDENTITIES, _nothing),
}
# Activations by name, other than ReLU and ReLU6.
ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "elu": tf.nn.elu,
    "exponential": tf.exp,
    "gelu": tf.nn.gelu,
    "hard_sigmoid": lambda x: tf.clip_by_value(0.2 * x + 0.5, 0.0, 1.0),
    "leaky_relu": lambda x: tf.nn.leaky_relu(x, 0.2),
    "selu": tf.nn.selu,
    "sigmoid": tf.nn.sigmoid,
    "silu": tf.nn.silu,
    "softmax": tf.nn.softmax,
    "softplus": tf.nn.softplus,
    "softsign": tf.nn.softsign,
    "swish": tf.nn.silu,
    "tanh": tf.nn.tanh,
}
# Activations that mean something else in Keras 3, or exist only there.
KERAS_3: dict[str, Callable[[Any], Any]] = {
    "hard_sigmoid": _relu6,
    "hard_silu": lambda x: x * _relu6(x),
    "hard_swish": lambda x: x * _relu6(x),
}
