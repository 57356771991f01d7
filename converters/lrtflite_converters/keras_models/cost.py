"""Cost of each possible replay layer of a user's own model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tf_keras as keras

from lrtflite.host.cost import LayerCost
from lrtflite_converters.blocks.split import maker

layers = keras.layers


def count_costs(model: keras.Model, tensors: Sequence[Any]) -> tuple[LayerCost, ...]:
    """Return the cost of each replay layer, in network order; `tensors` are from the top down."""
    own = {layer.name: (_ops(layer), _weights(layer)) for layer in model.layers}
    total = max(1, sum(ops for ops, _ in own.values()))
    rows: list[LayerCost] = []
    counted: set[str] = set()
    done = 0
    for number, tensor in enumerate(reversed(tensors)):
        below = _layers_below(tensor)
        new = [own[name] for name in below - counted if name in own]
        counted |= below
        ops = sum(each for each, _ in new)
        done += ops
        neurons = math.prod(int(n) for n in tensor.shape[1:])
        is_image = number > 0 and len(tensor.shape) == 4
        rows.append(
            LayerCost(
                name=maker(tensor).name,
                neurons=neurons,
                ops=ops,
                weights=sum(each for _, each in new),
                bytes_per_latent=neurons * (4 if number else 1),
                computation=100 * (total - done) / total,
                pooled_bytes=4 * int(tensor.shape[-1]) if is_image else None,
            )
        )
    return tuple(rows)


def _layers_below(tensor: Any) -> set[str]:
    """Return the names of the layers that a tensor is computed by."""
    found: set[str] = set()
    waiting = [tensor]
    while waiting:
        layer = maker(waiting.pop())
        if layer.name not in found:
            found.add(layer.name)
            if not isinstance(layer, layers.InputLayer):
                waiting += layer.input if isinstance(layer.input, list) else [layer.input]
    return found


def _ops(layer: Any) -> int:
    """Return the multiply-adds of a layer: outputs times fan-in, or the inputs of pooling."""
    if isinstance(layer, layers.InputLayer):
        return 0
    outputs = math.prod(int(n) for n in layer.output.shape[1:])
    if isinstance(layer, (layers.Conv2D, layers.DepthwiseConv2D, layers.Dense)):
        depthwise = isinstance(layer, layers.DepthwiseConv2D)
        kernel = layer.depthwise_kernel if depthwise else layer.kernel
        fan_in = math.prod(kernel.shape[:2] if depthwise else kernel.shape[:-1])
        return outputs * (fan_in + 1)
    if "Pooling" in type(layer).__name__:
        return math.prod(int(n) for n in layer.input.shape[1:])
    return 0


def _weights(layer: Any) -> int:
    """Return the number of weights; of Batch Renorm, without the limits of its training."""
    return sum(math.prod(weight.shape) for weight in layer.weights if len(weight.shape))
