"""Wrap a folded network with tensorflow-model-optimization: it rounds as the int8 model will.

Weights are rounded with one scale for each output channel, including those of depthwise kernels,
for which the library's own default is one scale for all. Activations are rounded in the ranges
that calibration gives, where the converter rounds them: after the activation of a convolution.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tf_keras as keras

from lrtflite.errors import ModelError
from lrtflite_converters.blocks.convolution import describe
from lrtflite_converters.quantise.folding import CONVOLUTIONS

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its imports use deprecated names
    import tensorflow_model_optimization as tfmot

layers = keras.layers
quantizers = tfmot.quantization.keras.quantizers
Ranges = Mapping[str, tuple[float, float]]


class KernelQuantizer(quantizers.LastValueQuantizer):  # type: ignore[name-defined]
    """Round a kernel to int8, symmetrically, with one scale for each output channel."""

    def __init__(self, depthwise: bool = False) -> None:
        super().__init__(num_bits=8, per_axis=True, symmetric=True, narrow_range=True)
        self.depthwise = depthwise

    def build(self, tensor_shape: Any, name: str, layer: Any) -> dict[str, tf.Variable]:
        channels = tensor_shape[2] * tensor_shape[3] if self.depthwise else tensor_shape[-1]
        limits = {"min_var": ("_min", -1.0), "max_var": ("_max", 1.0)}
        return {
            key: layer.add_weight(
                name + end,
                shape=(channels,),
                initializer=keras.initializers.Constant(value),
                trainable=False,
            )
            for key, (end, value) in limits.items()
        }

    def __call__(self, inputs: tf.Tensor, training: bool, weights: Any, **rest: Any) -> tf.Tensor:
        if not self.depthwise:
            return super().__call__(inputs, training, weights, **rest)
        # The library's op has one scale for each index of the last axis.
        height, width, channels, multiplier = inputs.shape
        flat = tf.reshape(inputs, [height, width, 1, channels * multiplier])
        return tf.reshape(super().__call__(flat, training, weights, **rest), inputs.shape)

    def get_config(self) -> dict[str, Any]:
        return {"depthwise": self.depthwise}


class Rounding(tfmot.quantization.keras.QuantizeConfig):
    """Round the kernel of a layer, if it has one, and its output, if `limits` gives its range."""

    def __init__(self, kernel: str = "", limits: tuple[float, float] | None = None) -> None:
        self.kernel, self.limits = kernel, limits

    def get_weights_and_quantizers(self, layer: Any) -> list[tuple[Any, Any]]:
        depthwise = isinstance(layer, layers.DepthwiseConv2D)
        return [(getattr(layer, self.kernel), KernelQuantizer(depthwise))] if self.kernel else []

    def get_activations_and_quantizers(self, layer: Any) -> list[tuple[Any, Any]]:
        return []

    def set_quantize_weights(self, layer: Any, quantize_weights: Any) -> None:
        if self.kernel:
            (kernel,) = quantize_weights
            setattr(layer, self.kernel, kernel)

    def set_quantize_activations(self, layer: Any, quantize_activations: Any) -> None:
        """Do nothing: outputs are rounded instead."""
        del layer, quantize_activations

    def get_output_quantizers(self, layer: Any) -> list[Any]:
        if self.limits is None:
            return []
        low, high = self.limits
        return [
            quantizers.FixedQuantizer(num_bits=8, init_min=low, init_max=high, narrow_range=False)
        ]

    def get_config(self) -> dict[str, Any]:
        return {"kernel": self.kernel, "limits": self.limits}


def wrap(model: keras.Model, ranges: Ranges) -> keras.Model:
    """Return a copy of a folded network that rounds; raise ModelError for an unknown layer.

    `ranges` has the smallest and the largest output of each layer, by name.
    """
    known = tfmot.quantization.keras.default_8bit.Default8BitQuantizeRegistry()
    for layer in model.layers[1:]:
        if not known.supports(layer):
            raise ModelError(
                f"Expected layers that tensorflow-model-optimization can wrap, got "
                f"{describe(layer)}",
                "use --quantize int8, or a replay layer below it",
            )
    fused = _fused(model)

    def annotated(layer: Any) -> Any:
        copy = type(layer).from_config(layer.get_config())
        if isinstance(layer, layers.InputLayer):
            return copy
        is_convolution = type(layer) in CONVOLUTIONS
        depthwise = isinstance(layer, layers.DepthwiseConv2D)
        kernel = ("depthwise_kernel" if depthwise else "kernel") if is_convolution else ""
        # A convolution below an activation, and padding, are not rounded on their own.
        whole = layer.name in fused or isinstance(layer, layers.ZeroPadding2D)
        rounding = Rounding(kernel, None if whole else ranges[layer.name])
        return tfmot.quantization.keras.quantize_annotate_layer(copy, rounding)

    names = {"Rounding": Rounding, "KernelQuantizer": KernelQuantizer}
    with tfmot.quantization.keras.quantize_scope(names), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        marked = keras.models.clone_model(model, clone_function=annotated)
        marked.set_weights(model.get_weights())
        return tfmot.quantization.keras.quantize_apply(marked, scheme=_AsGiven())


class _AsGiven(tfmot.quantization.keras.default_8bit.Default8BitQuantizeScheme):
    """Leave the layout of the network as it is: it was folded before."""

    def get_layout_transformer(self) -> Any:
        return _Unchanged()


class _Unchanged(tfmot.quantization.keras.default_8bit.Default8BitQuantizeLayoutTransform):
    def apply(self, model: keras.Model, layer_quantize_map: Any) -> tuple[keras.Model, Any]:
        return model, layer_quantize_map


def _fused(model: keras.Model) -> set[str]:
    """Return the names of the convolutions and sums whose only user is a ReLU."""
    users: dict[int, list[Any]] = {}
    for layer in model.layers[1:]:
        for tensor in layer.input if isinstance(layer.input, list) else [layer.input]:
            users.setdefault(id(tensor), []).append(layer)
    return {
        layer.name
        for layer in model.layers[1:]
        if type(layer) in (*CONVOLUTIONS, layers.Add)
        and [type(user) for user in users.get(id(layer.output), [])] == [layers.ReLU]
    }
