"""Cost of each possible replay layer: the arithmetic of the paper's two tables.

The counts follow the paper's appendix (Table "model_arch"). The ops of a layer are its neurons
times (fan-in + 1); the ops of pool6 are its inputs. Weights include one bias per channel, although
a network with Batch Renorm has no biases, so the total exceeds Keras' `count_params()`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import tf_keras as keras

from lrtflite.host.mobilenet import conv_name
from lrtflite.layer_names import KERAS_NAMES, MOBILENET_V1


@dataclass(frozen=True)
class LayerCost:
    """One row of the table.

    Attributes:
        name: the layer, by the paper's name.
        neurons: values in its output for one frame, which are one latent.
        ops: multiply-adds to compute it from the layer below.
        weights: its weights, with one bias per channel.
        bytes_per_latent: size of one stored latent: float32, or uint8 for images.
        pooled_bytes: bytes of one pattern with `--pooled`; None where nothing can be pooled.
        computation: ops strictly above the layer, as a percentage of all ops (native rehearsal).
    """

    name: str
    neurons: int
    ops: int
    weights: int
    bytes_per_latent: int
    computation: float
    pooled_bytes: int | None = None


@dataclass(frozen=True)
class NetworkCost:
    """The rows of all layers, in network order."""

    layers: tuple[LayerCost, ...]

    @property
    def ops(self) -> int:
        """Return the multiply-adds for one frame through the entire network."""
        return sum(layer.ops for layer in self.layers)

    @property
    def weights(self) -> int:
        """Return the number of weights, with one bias per channel."""
        return sum(layer.weights for layer in self.layers)


def network_cost(model: keras.Model) -> NetworkCost:
    """Count neurons, ops and weights from the shapes of a model made by `mobilenet_v1`."""
    names = list(MOBILENET_V1.replay_layers)
    if model.layers[-1].name == MOBILENET_V1.classifier:
        names.append(MOBILENET_V1.classifier)
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
                bytes_per_latent=neurons * (1 if MOBILENET_V1.reads_frames(name) else 4),
                computation=100 * above / total,
                pooled_bytes=_pooled_bytes(model, name),
            )
        )
    return NetworkCost(tuple(rows))


def _pooled_bytes(model: keras.Model, name: str) -> int | None:
    """Return the bytes of a layer's average over all pixels; None for frames and vectors."""
    if MOBILENET_V1.reads_frames(name) or len(model.get_layer(name).output.shape) != 4:
        return None
    return 4 * int(model.get_layer(name).output.shape[-1])


def _count(model: keras.Model, name: str) -> tuple[int, int, int]:
    """Return (neurons, ops, weights) of the layer called `name`."""
    if MOBILENET_V1.reads_frames(name):
        return math.prod(model.input_shape[1:]), 0, 0
    layer = model.get_layer(name)
    neurons = math.prod(layer.output.shape[1:])
    if name == MOBILENET_V1.pooled:
        return neurons, math.prod(layer.input.shape[1:]), 0
    owner = model.get_layer(conv_name(name)) if name in KERAS_NAMES else layer
    (kernel,) = owner.weights
    channels = layer.output.shape[-1]
    fan_in = math.prod(kernel.shape) // channels
    return neurons, neurons * (fan_in + 1), channels * (fan_in + 1)
