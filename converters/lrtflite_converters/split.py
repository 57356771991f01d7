"""Split a network at a replay layer: Keras layers become blocks that train.

The walk goes from the last layer down. The table `MATCHERS` has a function for each kind of layer
that may end a block. The function turns that layer, and the layers below that belong to it, into a
block, and returns the tensor at which the walk goes on. To let one more kind of layer train, write
such a function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import tf_keras as keras

from lrtflite.errors import ModelError
from lrtflite.host.batch_renorm import BatchRenorm
from lrtflite.host.network import Network
from lrtflite_converters import differentiable as ops
from lrtflite_converters.blocks.block import Block, Chain
from lrtflite_converters.blocks.pooling import Pooling
from lrtflite_converters.blocks.residual import Residual
from lrtflite_converters.convolution import describe, unit_of
from lrtflite_converters.differentiable import Activation

layers = keras.layers


@dataclass(frozen=True)
class Walk:
    """A walk down to `stop`, the output of the layer `first`; see `ExportOptions` for the rest."""

    first: str
    stop: Any
    train_depthwise: bool

    def chain(self, tensor: Any) -> Chain:
        """Return the blocks from `stop` up to `tensor`."""
        blocks: list[Block] = []
        while tensor is not self.stop:
            layer = maker(tensor)
            if type(layer) not in MATCHERS:  # a subclass may compute something else
                raise self._unknown(layer)
            block, tensor = MATCHERS[type(layer)](layer, self)
            blocks.append(block)
        return Chain(tuple(reversed(blocks)), tuple(int(n) for n in self.stop.shape[1:]))

    def _unknown(self, layer: Any) -> ModelError:
        if isinstance(layer, layers.InputLayer):
            return ModelError(
                f"Expected a chain of layers that begins at {self.first}, got a path around it "
                f"that begins at {describe(layer)}; choose a replay layer that all paths go through"
            )
        supported = ", ".join(kind.__name__ for kind in TRAINABLE)
        return ModelError(
            f"Expected layers that train with built-in ops ({supported}), got {describe(layer)}; "
            "choose a replay layer above it, without --adapt-moments"
        )


def blocks_above(
    network: Network, replay_layer: str, *, train_depthwise: bool, top: str | None = None
) -> Chain:
    """Return the blocks above a replay layer, up to the pooled layer, or the average of `top`."""
    pooled = network.architecture.pooled
    chain = _between(network, replay_layer, top or pooled, train_depthwise)
    return chain if top in (None, pooled) else _averaged(chain)


def blocks_below(network: Network, replay_layer: str, *, pooled: bool = False) -> Chain:
    """Return the blocks from the frames to a replay layer; with `pooled`, to its average."""
    first = network.architecture.replay_layers[0]
    chain = _between(network, first, replay_layer, train_depthwise=False)
    return _averaged(chain) if pooled else chain


def _averaged(chain: Chain) -> Chain:
    return replace(chain, blocks=(*chain.blocks, Pooling(chain.output)))


def _between(network: Network, first: str, last: str, train_depthwise: bool) -> Chain:
    walk = Walk(first, network.layer(first).output, train_depthwise)
    return walk.chain(network.layer(last).output)


def maker(tensor: Any) -> Any:
    """Return the layer that a Keras tensor comes from."""
    return tensor._keras_history.layer


def _match_pooling(layer: Any, walk: Walk) -> tuple[Block, Any]:
    image = tuple(int(n) for n in layer.input.shape[1:])
    return Pooling(image), layer.input


def _match_relu(layer: Any, walk: Walk) -> tuple[Block, Any]:
    norm = maker(layer.input)
    if not isinstance(norm, BatchRenorm):
        raise _out_of_turn(layer, norm)
    return _match_unit(layer, norm, walk)


def _match_renorm(layer: Any, walk: Walk) -> tuple[Block, Any]:
    return _match_unit(layer, layer, walk)


def _match_unit(last: Any, norm: Any, walk: Walk) -> tuple[Block, Any]:
    """Match a unit; `last` is the activation, or `norm` if there is none."""
    convolution = maker(norm.input)
    if not isinstance(convolution, (layers.Conv2D, layers.DepthwiseConv2D)):
        raise _out_of_turn(last, convolution)
    if type(convolution) not in (layers.Conv2D, layers.DepthwiseConv2D):
        raise walk._unknown(convolution)
    below, padding = convolution.input, None
    if below is not walk.stop and isinstance(maker(below), layers.ZeroPadding2D):
        padding, below = maker(below).padding, maker(below).input
    unit = unit_of(
        convolution,
        norm,
        ops.linear if last is norm else _activation(last),
        name=last.name,
        padding=padding,
        train_depthwise=walk.train_depthwise,
    )
    return unit, below


def _match_add(layer: Any, walk: Walk) -> tuple[Block, Any]:
    """Match a residual block: one input of the sum is also where the other path begins."""
    inputs = list(layer.input)
    if len(inputs) == 2:
        joined, made = inputs if _leads_to(inputs[0], inputs[1]) else reversed(inputs)
        if _leads_to(joined, made):
            chain = Walk(maker(joined).name, joined, walk.train_depthwise).chain(made)
            if chain.output == chain.image:  # Keras would broadcast other shapes
                return Residual(chain), joined
    raise ModelError(
        f"Expected a sum of a layer and a chain of units on top of it, got {describe(layer)} of "
        "other paths; choose a replay layer above it"
    )


def _leads_to(lower: Any, upper: Any) -> bool:
    """Return whether `lower` is among the tensors that `upper` is computed from."""
    waiting, seen = [upper], set()
    while waiting:
        tensor = waiting.pop()
        if tensor is lower:
            return True
        layer = maker(tensor)
        if id(layer) not in seen and not isinstance(layer, layers.InputLayer):
            seen.add(id(layer))
            waiting += layer.input if isinstance(layer.input, list) else [layer.input]
    return False


def _activation(layer: Any) -> Activation:
    supported = {None: ops.relu, 6.0: ops.relu6}
    highest = None if layer.max_value is None else float(layer.max_value)
    if highest not in supported or layer.negative_slope or layer.threshold:
        raise ModelError(
            f"Expected ReLU or ReLU6, got {describe(layer)} with other settings; "
            "choose a replay layer above it"
        )
    return supported[highest]


def _out_of_turn(layer: Any, below: Any) -> ModelError:
    return ModelError(
        f"Expected a convolution, BatchRenorm and ReLU in turn, got {describe(layer)} on top of "
        f"{describe(below)}; build the network from such units, as `lrtflite train` does"
    )


Matcher = Callable[[Any, Walk], tuple[Block, Any]]
# Matcher of each kind of layer that may end a block.
MATCHERS: dict[type, Matcher] = {
    layers.GlobalAveragePooling2D: _match_pooling,
    layers.ReLU: _match_relu,
    BatchRenorm: _match_renorm,
    layers.Add: _match_add,
}
# Kinds of layers that may be part of a block.
TRAINABLE = (layers.ZeroPadding2D, layers.Conv2D, layers.DepthwiseConv2D, *MATCHERS)
