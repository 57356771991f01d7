"""Split a network at a replay layer: Keras layers become blocks that train.

The walk goes from the last layer down. The table `MATCHERS` has a function for each kind of layer
that may end a block. The function turns that layer, and the layers below that belong to it, into a
block, and returns the tensor at which the walk goes on. To let one more kind of layer train, write
such a function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import tf_keras as keras

from lrtflite.errors import ModelError
from lrtflite.host.batch_renorm import BatchRenorm
from lrtflite.host.network import Network
from lrtflite_converters.blocks.block import Block, Chain
from lrtflite_converters.blocks.convolution import Linear, biased_of, describe, linear_of, unit_of
from lrtflite_converters.blocks.joined import Joined
from lrtflite_converters.blocks.pooling import Pooling
from lrtflite_converters.blocks.weightless import Activated, Flattened, Padded
from lrtflite_converters.blocks.window_pooling import GlobalMaximum, WindowPooling
from lrtflite_converters.gradients import differentiable as ops
from lrtflite_converters.gradients.differentiable import Activation

layers = keras.layers


@dataclass(frozen=True)
class Walk:
    """A walk down to `stop`, the output of the layer `first`; see `Conversion` for the rest."""

    first: str
    stop: Any
    train_depthwise: bool

    def chain(self, tensor: Any) -> Chain:
        """Return the blocks from `stop` up to `tensor`."""
        blocks = [block for block, _ in self.down(tensor)]
        return Chain(tuple(reversed(blocks)), tuple(int(n) for n in self.stop.shape[1:]))

    def down(self, tensor: Any) -> Iterator[tuple[Block, Any]]:
        """Yield the blocks from `tensor` down to `stop`, each with its input."""
        while tensor is not self.stop:
            layer = maker(tensor)
            if type(layer) not in MATCHERS:  # a subclass may compute something else
                raise self._unknown(layer)
            block, tensor = MATCHERS[type(layer)](layer, self)
            yield block, tensor

    def _unknown(self, layer: Any) -> ModelError:
        if isinstance(layer, layers.InputLayer):
            return ModelError(
                f"Expected a chain of layers that begins at {self.first}, got a path around it "
                f"that begins at {describe(layer)}",
                "choose a replay layer that all paths go through",
            )
        supported = ", ".join(kind.__name__ for kind in MATCHERS)
        return ModelError(
            f"Expected layers that train with built-in ops ({supported}), got {describe(layer)}",
            "choose a replay layer above it, without --adapt-moments",
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
    return Pooling(_image(layer)), layer.input


def _match_maximum(layer: Any, walk: Walk) -> tuple[Block, Any]:
    return GlobalMaximum(_image(layer)), layer.input


def _match_windows(layer: Any, walk: Walk) -> tuple[Block, Any]:
    maximum, same = isinstance(layer, layers.MaxPooling2D), layer.padding == "same"
    (size, other), strides = layer.pool_size, set(layer.strides)
    output = tuple(int(n) for n in layer.output.shape[1:])
    if size != other or len(strides) != 1 or (same and not maximum):
        raise ModelError(
            "Expected pooling over square windows, with padding only for a maximum, got "
            f"{describe(layer)}",
            "choose a replay layer above it",
        )
    pooled = WindowPooling(_image(layer), output, size, strides.pop(), same, maximum)
    return pooled, layer.input


def _match_flatten(layer: Any, walk: Walk) -> tuple[Block, Any]:
    return Flattened(_image(layer)), layer.input


def _match_padding(layer: Any, walk: Walk) -> tuple[Block, Any]:
    return Padded(_image(layer), layer.padding), layer.input


def _match_relu(layer: Any, walk: Walk) -> tuple[Block, Any]:
    activation, below = _activation(layer), layer.input
    if below is not walk.stop:
        lower = maker(below)
        if isinstance(lower, BatchRenorm):
            return _match_unit(layer, lower, activation, walk)
        if type(lower) in LINEAR:
            linear, below = _linear(lower, walk)
            return biased_of(linear, activation, name=layer.name), below
    return Activated(_image(layer), activation), below


def _match_renorm(layer: Any, walk: Walk) -> tuple[Block, Any]:
    return _match_unit(layer, layer, ops.linear, walk)


def _match_linear(layer: Any, walk: Walk) -> tuple[Block, Any]:
    linear, below = _linear(layer, walk)
    return biased_of(linear, ops.linear, name=layer.name), below


def _match_unit(last: Any, norm: Any, activation: Activation, walk: Walk) -> tuple[Block, Any]:
    """Match a unit; `last` is the activation, or `norm` if there is none."""
    below, linear = norm.input, None
    if below is not walk.stop and type(maker(below)) in LINEAR:
        linear, below = _linear(maker(below), walk)
    return unit_of(linear, norm, activation, name=last.name), below


def _linear(layer: Any, walk: Walk) -> tuple[Linear, Any]:
    """Return a convolution or dense layer, with its padding, and the tensor below both."""
    below, padding = layer.input, None
    if below is not walk.stop and isinstance(maker(below), layers.ZeroPadding2D):
        padding, below = maker(below).padding, maker(below).input
    return linear_of(layer, padding=padding, train_depthwise=walk.train_depthwise), below


def _match_add(layer: Any, walk: Walk) -> tuple[Block, Any]:
    """Match a sum of two paths that begin at the same tensor; one of them may be that tensor."""
    inputs = list(layer.input)
    if len(inputs) == 2 and inputs[0].shape == inputs[1].shape:  # Keras would broadcast others
        joined = _fork(*inputs)
        if joined is not None:
            inner = Walk(maker(joined).name, joined, walk.train_depthwise)
            paths = [inner.chain(tensor) for tensor in inputs]
            made = [path for path in paths if path.blocks]
            if len(made) == 1:
                return Joined.residual(made[0]), joined
            if made:
                return Joined(*made), joined
    raise ModelError(
        "Expected a sum of two paths of the same shape that begin at one layer, got "
        f"{describe(layer)} of other paths",
        "choose a replay layer above it",
    )


def _fork(one: Any, other: Any) -> Any | None:
    """Return the highest tensor that both tensors are computed from, or None."""
    of_other = {id(tensor) for tensor in _sources(other)}
    # A tensor comes before all tensors that it is computed from.
    return next((tensor for tensor in _sources(one) if id(tensor) in of_other), None)


def _sources(tensor: Any) -> list[Any]:
    """Return a tensor and all that it is computed from, each before its own sources."""
    found: list[Any] = []
    seen: set[int] = set()
    waiting = [(tensor, False)]
    while waiting:
        each, is_done = waiting.pop()
        if is_done:
            found.append(each)
        elif id(each) not in seen:
            seen.add(id(each))
            layer = maker(each)
            below = [] if isinstance(layer, layers.InputLayer) else layer.input
            below = below if isinstance(below, list) else [below]
            waiting += [(each, True), *((lower, False) for lower in below)]
    return found[::-1]


def _activation(layer: Any) -> Activation:
    supported = {None: ops.relu, 6.0: ops.relu6}
    highest = None if layer.max_value is None else float(layer.max_value)
    if highest not in supported or layer.negative_slope or layer.threshold:
        raise ModelError(
            f"Expected ReLU or ReLU6, got {describe(layer)} with other settings",
            "choose a replay layer above it",
        )
    return supported[highest]


def _image(layer: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in layer.input.shape[1:])


Matcher = Callable[[Any, Walk], tuple[Block, Any]]
# Matcher of each kind of layer that may end a block.
MATCHERS: dict[type, Matcher] = {
    layers.Conv2D: _match_linear,
    layers.DepthwiseConv2D: _match_linear,
    layers.Dense: _match_linear,
    BatchRenorm: _match_renorm,
    layers.ReLU: _match_relu,
    layers.Add: _match_add,
    layers.GlobalAveragePooling2D: _match_pooling,
    layers.GlobalMaxPooling2D: _match_maximum,
    layers.MaxPooling2D: _match_windows,
    layers.AveragePooling2D: _match_windows,
    layers.ZeroPadding2D: _match_padding,
    layers.Flatten: _match_flatten,
}
# Kinds of layers that a norm or an activation above them joins.
LINEAR = (layers.Conv2D, layers.DepthwiseConv2D, layers.Dense)
