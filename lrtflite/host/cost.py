"""What each possible replay layer costs: the arithmetic of the paper's two tables.

Counted as in the paper's appendix (Table "model_arch"): ops of a layer are its neurons times
(fan-in + 1), those of pool6 its inputs; weights include one bias per channel, although a network
with Batch Renorm has none, so they exceed Keras' `count_params()`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import tf_keras as keras

from lrtflite.host.mobilenet import conv_name
from lrtflite.layer_names import KERAS_NAMES, REPLAY_LAYERS

__all__ = ["REPLAY_LAYERS", "LayerCost", "NetworkCost", "network_cost"]


@dataclass(frozen=True)
class LayerCost:
    """One row of the table.

    Attributes:
        name: the layer, in the paper's words.
        neurons: values of its output for one frame, the size of one latent.
        ops: multiply-adds to compute it from the layer below.
        weights: its weights, with one bias per channel.
        bytes_per_latent: what one stored pattern takes: float32 latents, but uint8 images.
        computation: percent of native rehearsal: the ops strictly above the layer over all ops.
    """

    name: str
    neurons: int
    ops: int
    weights: int
    bytes_per_latent: int
    computation: float


@dataclass(frozen=True)
class NetworkCost:
    """The rows from `images` to `fc7`, in network order."""

    layers: tuple[LayerCost, ...]

    @property
    def ops(self) -> int:
        """Multiply-adds for one frame through the whole network."""
        return sum(layer.ops for layer in self.layers)

    @property
    def weights(self) -> int:
        """All weights, with one bias per channel."""
        return sum(layer.weights for layer in self.layers)


def network_cost(model: keras.Model) -> NetworkCost:
    """Count neurons, ops and weights from the shapes of a model made by `mobilenet_v1`."""
    names = [*REPLAY_LAYERS, *(["fc7"] if model.layers[-1].name == "fc7" else [])]
    counts = [_count(model, name) for name in names]
    total = sum(ops for _, ops, _ in counts)
    rows = []
    above = total
    for name, (neurons, ops, weights) in zip(names, counts):
        above -= ops
        rows.append(
            LayerCost(
                name=name,
                neurons=neurons,
                ops=ops,
                weights=weights,
                bytes_per_latent=neurons if name == "images" else 4 * neurons,
                computation=100 * above / total,
            )
        )
    return NetworkCost(tuple(rows))


def _count(model: keras.Model, name: str) -> tuple[int, int, int]:
    """(neurons, ops, weights) of the layer called `name`."""
    if name == "images":
        return math.prod(model.input_shape[1:]), 0, 0
    layer = model.get_layer(name)
    neurons = math.prod(layer.output.shape[1:])
    if name == "pool6":
        return neurons, math.prod(layer.input.shape[1:]), 0
    owner = model.get_layer(conv_name(name)) if name in KERAS_NAMES else layer
    (kernel,) = owner.weights
    channels = layer.output.shape[-1]
    fan_in = math.prod(kernel.shape) // channels
    return neurons, neurons * (fan_in + 1), channels * (fan_in + 1)
