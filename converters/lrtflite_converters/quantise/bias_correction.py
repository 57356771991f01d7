"""Correct biases for the rounding of weights: each channel keeps its mean over the frames.

The nine taps of a depthwise kernel round in the same direction often enough to shift the mean of a
channel. Layers above it see that as another picture (Nagel et al., *Data-Free Quantization Through
Weight Equalization and Bias Correction*, ICCV 2019, section 4.2). With ImageNet weights it is ten
times the rest of the noise (docs/studies/quantisation.md).
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras as keras

from lrtflite.evenly import evenly
from lrtflite_converters.quantise.preparation import Preparation, rounded_kernel

# Most frames that means are computed from; more change the result by 0.2 dB.
FRAMES = 64


def correct_biases(preparation: Preparation) -> None:
    """Change the bias of every convolution, from the first to the last.

    Each layer gets its inputs twice: from the float network, and from the network with rounded
    weights and corrected biases so far. The difference of the mean outputs goes into the bias.
    """
    preparation.stage("correcting biases for rounded weights")
    model = preparation.model
    convolutions = {id(layer) for layer in preparation.convolutions}
    # Every part of the data set, because its frames are in the order of the classes.
    frames = preparation.frames[list(evenly(len(preparation.frames), FRAMES))]
    inputs = tf.constant(preparation.scale(frames)), tf.constant(preparation.scaling(frames))
    # Outputs of the float and of the rounded network, by tensor, until their last use.
    outputs: dict[int, tuple[Any, Any]] = {id(model.input): inputs}
    last = _last_uses(model)
    for place, layer in enumerate(model.layers[1:], start=1):
        exact, rounded = _inputs(layer, outputs)
        if id(layer) in convolutions and layer.use_bias:
            kernel, bias = layer.get_weights()
            wanted = layer(exact)
            layer.set_weights([rounded_kernel(layer), bias])
            found = layer(rounded)
            shift = tf.reduce_mean(wanted - found, axis=[0, 1, 2])
            layer.set_weights([kernel, bias + shift.numpy()])
            outputs[id(layer.output)] = wanted, found + shift
        else:
            outputs[id(layer.output)] = layer(exact), layer(rounded)
        for tensor in [key for key, user in last.items() if user == place]:
            del outputs[tensor]


def _inputs(layer: Any, outputs: dict[int, tuple[Any, Any]]) -> tuple[Any, Any]:
    if not isinstance(layer.input, list):
        return outputs[id(layer.input)]
    exact, rounded = zip(*(outputs[id(each)] for each in layer.input))
    return list(exact), list(rounded)


def _last_uses(model: keras.Model) -> dict[int, int]:
    """Return the place of the last layer that reads each tensor, by the tensor's id."""
    last: dict[int, int] = {}
    for place, layer in enumerate(model.layers[1:], start=1):
        for tensor in layer.input if isinstance(layer.input, list) else [layer.input]:
            last[id(tensor)] = place
    return last
