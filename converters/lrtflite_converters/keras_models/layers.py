"""Build tf-keras layers from the configurations of a Keras file, class by class.

The table `LAYERS` has a function for each class; a class that is not in it is refused. Nothing in a
file is imported or executed. Layers are built in a plain form, which the matchers of `split` know:
activations and biases of separable convolutions become layers of their own, Batch Normalization
becomes Batch Renorm with the same moments, and layers that do nothing in inference are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tf_keras as keras

from lrtflite.errors import ModelError
from lrtflite.files.keras import first_line
from lrtflite_converters.keras_models import weighted
from lrtflite_converters.keras_models.building import Builder, image_of, is_linear, options_of
from lrtflite_converters.keras_models.graph import OPERATOR, Node

layers = keras.layers
# Maximum number of values in the output of a layer for one frame.
MAX_VALUES = 1 << 27
# Smallest deviation that Keras's Normalization divides by.
MIN_DEVIATION = 1e-7


def build_layer(builder: Builder, node: Node, inputs: Sequence[Any]) -> Any:
    """Return the output of a layer, or raise ModelError that names it."""
    check_known(node)
    try:
        output = LAYERS[node.kind](builder, node, inputs)
    except (
        ValueError,
        TypeError,
        KeyError,
        IndexError,
        AttributeError,
        OverflowError,
    ) as error:
        raise ModelError(
            f"Expected a layer as Keras saves it, got {node}, which cannot be built "
            f"({first_line(error)})",
            "save the model again",
        ) from error
    values = math.prod(int(n or 0) for n in output.shape[1:])
    if not 0 < values <= MAX_VALUES:
        raise ModelError(
            f"Expected 1 to {MAX_VALUES:,} values from each layer, got {values:,} from {node}",
            "use a smaller model",
        )
    return output


def check_known(node: Node) -> None:
    """Raise ModelError for a layer that is not in the table."""
    if node.kind in ("Lambda", "TFOpLambda", "SlicingOpLambda"):
        raise ModelError(
            f"Expected layers without code of their own, got {node}",
            "a Lambda layer, or an "
            "operator on tensors, executes code from the file and is refused: use Keras's layers",
        )
    custom = node.registered and ">" in node.registered and not node.registered.startswith("lrtf")
    if custom or node.kind not in LAYERS:
        raise ModelError(
            f"Expected Keras's own layers, got {node}, which is a custom layer or not supported",
            "use the layers that docs/own-network.md lists, or export the model for --features",
        )


def is_identity(node: Node) -> bool:
    """Return whether a layer gives its input in inference."""
    if node.kind == "Activation":
        return is_linear(node.config.get("activation"))
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
        deviations = np.maximum(np.sqrt(variances), MIN_DEVIATION)
        return (1 / deviations).tolist(), (-means / deviations).tolist()
    return None


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
    channels = image_of(node, x)[2]
    if not node.config.get("keepdims"):
        return kind(name=node.name)(x)
    return layers.Reshape((1, 1, channels), name=node.name)(kind(name=f"{node.name}/pool")(x))


def _simple(kind: Any, *names: str) -> LayerBuilder:
    """Return a builder for a layer without weights, from the named options."""

    def build(builder: Builder, node: Node, inputs: Sequence[Any]) -> Any:
        if "data_format" in node.config:
            image_of(node, inputs[0])
        x = list(inputs) if len(inputs) > 1 else inputs[0]
        return kind(name=node.name, **options_of(node, *names))(x)

    return build


def _operator(kind: Any, function: Callable[[Any, float], Any]) -> LayerBuilder:
    """Return a builder for an operator of Keras 3 on two tensors, or on a tensor and a number."""

    def build(builder: Builder, node: Node, inputs: Sequence[Any]) -> Any:
        if len(inputs) == 2 and not node.numbers:
            return kind(name=node.name)(list(inputs))
        (x,), (number,) = inputs, node.numbers
        return layers.Activation(lambda value: function(value, number), name=node.name)(x)

    return build


def _flatten(builder: Builder, node: Node, inputs: Sequence[Any]) -> Any:
    return layers.Flatten(name=node.name)(inputs[0])


def _nothing(builder: Builder, node: Node, inputs: Sequence[Any]) -> Any:
    return inputs[0]


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
    "BatchNormalization": weighted.build_batch_norm,
    "BatchRenorm": weighted.build_batch_renorm,
    "Concatenate": _simple(layers.Concatenate, "axis"),
    "Conv2D": weighted.build_conv2d,
    "Conv2DTranspose": weighted.build_transposed,
    "Cropping2D": _simple(layers.Cropping2D, "cropping"),
    "Dense": weighted.build_dense,
    "DepthwiseConv2D": weighted.build_depthwise,
    "ELU": _simple(layers.ELU, "alpha"),
    "Flatten": _flatten,
    "GlobalAveragePooling2D": _global_average,
    "GlobalMaxPooling2D": _global_maximum,
    "LayerNormalization": weighted.build_layer_norm,
    "LeakyReLU": _leaky,
    "MaxPooling2D": _simple(layers.MaxPooling2D, *WINDOW),
    "Maximum": _simple(layers.Maximum),
    "Minimum": _simple(layers.Minimum),
    "Multiply": _simple(layers.Multiply),
    "Normalization": _rescale,
    "PReLU": weighted.build_prelu,
    "Permute": _simple(layers.Permute, "dims"),
    "ReLU": _simple(layers.ReLU, "max_value", "negative_slope", "threshold"),
    "Rescaling": _rescale,
    "Reshape": _simple(layers.Reshape, "target_shape"),
    "SeparableConv2D": weighted.build_separable,
    "Softmax": _simple(layers.Softmax, "axis"),
    "Subtract": _simple(layers.Subtract),
    "UpSampling2D": _simple(layers.UpSampling2D, "size", "interpolation"),
    "ZeroPadding2D": _simple(layers.ZeroPadding2D, "padding"),
    f"{OPERATOR}Add": _operator(layers.Add, lambda x, number: x + number),
    f"{OPERATOR}Multiply": _operator(layers.Multiply, lambda x, number: x * number),
    **dict.fromkeys(IDENTITIES, _nothing),
}
