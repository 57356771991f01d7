"""Blocks without weights that only change shapes or values: activations, Flatten, padding."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from lrtflite_converters.blocks.block import Block, BlockInput, Pass, Shape, Step, Trace, Values
from lrtflite_converters.gradients.differentiable import Activation, linear
from lrtflite_converters.gradients.window import Edges, Tensor


class Weightless(Block):
    """A block without variables: a function of its input, and the pullback of that function."""

    activation: Activation = linear

    @property
    def tensors(self) -> dict[str, Any]:
        return {}

    @abstractmethod
    def value(self, x: Tensor) -> Tensor:
        """Return the output for an input in any rank."""

    @abstractmethod
    def pull(self, x: Tensor, dy: Tensor) -> Tensor:
        """Return the gradient of the input, in any rank."""

    def infer(self, x: Tensor, values: Values) -> Tensor:
        return self.value(x)

    def forward(self, xs: Sequence[Tensor], source: BlockInput, run: Pass) -> Trace:
        return WeightlessTrace(self, source, [self.value(x) for x in xs])


@dataclass(frozen=True)
class WeightlessTrace(Trace):
    block: Weightless
    source: BlockInput
    outputs: Sequence[Tensor]

    def again(self, part: int, *, after: Tensor) -> Tensor:
        return self.block.value(self.source.again(part, after=after))

    def gate(self, y: Tensor, dy: Tensor) -> Tensor:
        return self.block.activation.gate(y, dy)

    def backward(self, gradients: Sequence[Tensor], step: Step) -> list[Tensor]:
        if not self.source.takes_gradient:
            return []
        found = []
        for part, gradient in enumerate(gradients):
            x = self.source.again(part, after=gradient)
            dx = tf.reshape(self.block.pull(x, gradient), x.shape)
            found.append(self.source.gate(x, dx))
        return found


@dataclass(frozen=True)
class Activated(Weightless):
    """An activation that follows something other than a convolution, such as a sum."""

    image: Shape
    activation: Activation

    @property
    def output(self) -> Shape:  # type: ignore[override]
        return self.image

    def value(self, x: Tensor) -> Tensor:
        return self.activation.value(x)

    def pull(self, x: Tensor, dy: Tensor) -> Tensor:
        return dy  # the block above has gated it already


@dataclass(frozen=True)
class Flattened(Weightless):
    """All values of an image as one vector, row by row."""

    image: Shape

    @property
    def output(self) -> Shape:  # type: ignore[override]
        return (math.prod(self.image),)

    def value(self, x: Tensor) -> Tensor:
        return tf.reshape(x, [-1, *self.output])

    def pull(self, x: Tensor, dy: Tensor) -> Tensor:
        return dy


@dataclass(frozen=True)
class Padded(Weightless):
    """Rows and columns of zeros around an image."""

    image: Shape
    edges: Edges

    @property
    def output(self) -> Shape:  # type: ignore[override]
        assert self.edges is not None
        (top, bottom), (left, right) = self.edges
        return self.image[0] + top + bottom, self.image[1] + left + right, self.image[2]

    def value(self, x: Tensor) -> Tensor:
        assert self.edges is not None
        return tf.pad(tf.reshape(x, [-1, *self.image]), [[0, 0], *self.edges, [0, 0]])

    def pull(self, x: Tensor, dy: Tensor) -> Tensor:
        assert self.edges is not None
        dy = tf.reshape(dy, [-1, *self.output])
        first = [0, self.edges[0][0], self.edges[1][0], 0]
        return tf.slice(dy, first, [dy.shape[0], *self.image])
