"""Cost of each possible replay layer: the arithmetic of the paper's two tables.

The counts follow the paper's appendix (Table "model_arch"). The ops of a convolution are its
neurons times (fan-in + 1); the ops of a pooling layer are its inputs, those of a sum its neurons
for each term after the first. Weights include one bias per channel, although a network with Batch
Renorm has no biases, so the total exceeds Keras' `count_params()`. A replay layer's row has
everything above the replay layer before it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import tf_keras as keras

from lrtflite.networks.architecture import Architecture
from lrtflite.networks.mobilenet_v1 import MOBILENET_V1


@dataclass(frozen=True)
class LayerCost:
    """One row of the table.

    Attributes:
        name: the replay layer, or the classifier.
        neurons: values in its output for one frame, which are one latent.
        ops: multiply-adds to compute it from the replay layer below.
        weights: the weights of these layers, with one bias per channel.
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


def network_cost(model: keras.Model, architecture: Architecture = MOBILENET_V1) -> NetworkCost:
    """Count neurons, ops and weights from the shapes of a model's layers.

    INVARIANT: a replay layer lies on every path from the input to the output, so Keras lists all
    layers below it before it.
    """
    names = list(architecture.replay_layers)
    if model.layers[-1].name == architecture.classifier:
        names.append(architecture.classifier)
    order = {layer.name: place for place, layer in enumerate(model.layers)}
    edges = [0, *(order[name] + 1 for name in names)]
    counts = [
        [_count(layer) for layer in model.layers[start:stop]]
        for start, stop in zip(edges, edges[1:])
    ]
    ops, weights = ([sum(pair[i] for pair in pairs) for pairs in counts] for i in (0, 1))
    rows, above = [], sum(ops)
    for name, own_ops, own_weights in zip(names, ops, weights):
        above -= own_ops
        shape = _shape(model.get_layer(name))
        is_input = architecture.reads_frames(name)
        neurons = math.prod(shape)
        rows.append(
            LayerCost(
                name=name,
                neurons=neurons,
                ops=own_ops,
                weights=own_weights,
                bytes_per_latent=neurons * (1 if is_input else 4),
                computation=100 * above / sum(ops),
                pooled_bytes=None if is_input or len(shape) != 3 else 4 * shape[-1],
            )
        )
    return NetworkCost(tuple(rows))


def _count(layer: Any) -> tuple[int, int]:
    """Return the ops and weights of a Keras layer; norms and activations count as nothing."""
    if isinstance(layer, keras.layers.InputLayer):
        return 0, 0
    if isinstance(layer, keras.layers.GlobalAveragePooling2D):
        return math.prod(layer.input.shape[1:]), 0
    neurons = math.prod(_shape(layer))
    if isinstance(layer, keras.layers.Add):
        return neurons * (len(layer.input) - 1), 0
    kernels = [weight for weight in layer.weights if "kernel" in weight.name]
    if not kernels:
        return 0, 0
    channels = layer.output.shape[-1]
    fan_in = sum(math.prod(kernel.shape) for kernel in kernels) // channels
    return neurons * (fan_in + 1), channels * (fan_in + 1)


def _shape(layer: Any) -> tuple[int, ...]:
    return tuple(layer.output.shape[1:])
