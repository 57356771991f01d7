"""Fold Batch Renorm into the convolutions below it, so that each unit is a single op."""

from __future__ import annotations

from typing import Any

import numpy as np
import tf_keras as keras
from numpy.typing import NDArray

from lrtflite.host.batch_renorm import BatchRenorm
from lrtflite.photos.batch_norm_folding import folded_kernel, folding_factors

layers = keras.layers
CONVOLUTIONS = (layers.Conv2D, layers.DepthwiseConv2D)
NORMS = (BatchRenorm, layers.BatchNormalization)


def fold(model: keras.Model) -> keras.Model:
    """Return a new model that computes the same, with each norm folded into its convolution.

    gamma (conv(x) - mean) / sqrt(variance + epsilon) + beta is a convolution with another kernel
    and a bias. A norm stays where it is on top of anything else than a linear convolution, or of
    one whose output is used elsewhere too.
    """
    folded = {id(_maker(norm.input)): norm for norm in model.layers if _folds(norm, model)}
    gone = {id(norm) for norm in folded.values()}
    image = keras.Input(model.input_shape[1:], name=model.layers[0].name)
    made: dict[int, Any] = {id(model.input): image}
    for layer in model.layers[1:]:
        if id(layer) in gone:
            made[id(layer.output)] = made[id(layer.input)]
            continue
        norm, config = folded.get(id(layer)), layer.get_config()
        copy = type(layer).from_config(config if norm is None else {**config, "use_bias": True})
        inputs = layer.input
        several = isinstance(inputs, list)
        made[id(layer.output)] = copy(
            [made[id(x)] for x in inputs] if several else made[id(inputs)]
        )
        copy.set_weights(layer.get_weights() if norm is None else folded_weights(layer, norm))
    return keras.Model(image, made[id(model.output)], name=model.name)


def folded_weights(convolution: Any, norm: Any) -> list[NDArray[np.float32]]:
    """Return the kernel and the bias of a convolution that includes its norm."""
    kernel, *rest = convolution.get_weights()
    mean, variance = _moments(norm)
    gamma = None if getattr(norm, "gamma", None) is None else norm.gamma.numpy()
    factors = folding_factors(variance, gamma, norm.epsilon)
    shift = 0.0 if getattr(norm, "beta", None) is None else norm.beta.numpy()
    bias = np.asarray(rest[0], np.float64) if rest else 0.0
    depthwise = isinstance(convolution, layers.DepthwiseConv2D)
    return [
        folded_kernel(kernel, factors, depthwise=depthwise),
        np.asarray((bias - np.asarray(mean, np.float64)) * factors + shift, np.float32),
    ]


def _moments(norm: Any) -> tuple[Any, Any]:
    return norm.moving_mean.numpy(), norm.moving_variance.numpy()


def _folds(norm: Any, model: keras.Model) -> bool:
    """Return whether a layer is a norm that is the only user of a linear convolution."""
    if type(norm) not in NORMS or list(getattr(norm, "axis", [3])) != [3]:
        return False
    convolution = _maker(norm.input)
    users = [layer for layer in model.layers if any(x is norm.input for x in _inputs(layer))]
    return (
        type(convolution) in CONVOLUTIONS
        and convolution.activation is keras.activations.linear
        and len(users) == 1
        and norm.input is not model.output
    )


def _inputs(layer: Any) -> list[Any]:
    return list(layer.input) if isinstance(layer.input, list) else [layer.input]


def _maker(tensor: Any) -> Any:
    return tensor._keras_history.layer
