"""Parts of building tf-keras layers from configurations: activations, options, weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras as keras

from lrtflite.arguments import shown
from lrtflite.errors import ModelError
from lrtflite_converters.keras_models.graph import Node

layers = keras.layers


@dataclass(frozen=True)
class Builder:
    """Builds layers on Keras tensors; `is_keras_3` decides between two meanings of a name."""

    is_keras_3: bool

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
                f"Expected an activation of Keras in {name}, got {shown(activation)}",
                "use one of its own",
            )
        return layers.Activation(functions[activation], name=name)(x)

    def finish(self, layer: Any, x: Any, node: Node, weights: Sequence[Any]) -> Any:
        """Apply a layer with its weights; the caller gave it the name of `inner_name`."""
        y = layer(x)
        layer.set_weights(list(weights))
        activation = node.config.get("activation")
        return y if is_linear(activation) else self.activate(y, activation, node.name)


def is_linear(activation: Any) -> bool:
    if isinstance(activation, dict):
        activation = activation.get("config")
    return activation in (None, "linear")


def inner_name(node: Node, part: str) -> str:
    """Return the name of a layer that an activation called `node.name` follows."""
    linear = is_linear(node.config.get("activation"))
    return node.name if linear else f"{node.name}/{part}"


def options_of(node: Node, *names: str) -> dict[str, Any]:
    """Return the options that a configuration has, with lists as tuples."""
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name in names
        if (value := node.config.get(name)) is not None
    }


def weights_of(node: Node, *shapes: tuple[int, ...] | None) -> list[Any]:
    """Return the weights of a layer; None stands for a weight that it does not have."""
    wanted = [tuple(int(n) for n in shape) for shape in shapes if shape is not None]
    found = [array.shape for array in node.weights]
    if len(found) != len(wanted):
        raise ModelError(
            f"Expected {len(wanted)} arrays of weights for {node}, got {len(found)}",
            "save the model again, with its weights",
        )
    for shape, each in zip(wanted, found):
        if shape != each:
            raise ModelError(
                f"Expected weights of shape {shape} for {node}, got {each}",
                "these weights are of a model of another width, save model and weights together",
            )
    for array in node.weights:
        if not np.isfinite(array).all():
            raise ModelError(
                f"Expected finite weights, got NaN or infinity in {node}",
                "train the model again with a lower learning rate",
            )
    return list(node.weights)


def image_of(node: Node, x: Any) -> tuple[int, int, int]:
    if node.config.get("data_format") == "channels_first":
        raise ModelError(
            f"Expected images with channels last, got {node} with channels first",
            "build the model with data_format='channels_last'",
        )
    if len(x.shape) != 4:
        raise ValueError(f"an input of rank {len(x.shape)}")
    _, height, width, channels = x.shape
    return int(height), int(width), int(channels)


def _hard_sigmoid(x: Any) -> Any:
    return tf.nn.relu6(x + 3.0) / 6.0


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
    "hard_sigmoid": _hard_sigmoid,
    "hard_silu": lambda x: x * _hard_sigmoid(x),
    "hard_swish": lambda x: x * _hard_sigmoid(x),
}
