"""A sum of two paths that begin at the same layer, each a chain of blocks.

A residual block is such a sum whose first path is empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain as chained
from typing import Any

import tensorflow as tf

from lrtflite_converters.blocks.block import (
    Block,
    BlockInput,
    Chain,
    Pass,
    Shape,
    Step,
    Trace,
    Values,
)
from lrtflite_converters.gradients.window import Tensor


@dataclass(frozen=True)
class Joined(Block):
    """left(x) + right(x)."""

    left: Chain
    right: Chain

    @classmethod
    def residual(cls, inner: Chain) -> Joined:
        """Return x + inner(x)."""
        return cls(Chain((), inner.image), inner)

    @property
    def image(self) -> Shape:  # type: ignore[override]
        return self.left.image

    @property
    def output(self) -> Shape:  # type: ignore[override]
        return self.left.output

    @property
    def tensors(self) -> dict[str, Any]:
        return {**self.left.tensors, **self.right.tensors}

    @property
    def trained(self) -> dict[str, bool]:
        return {**self.left.trained, **self.right.trained}

    @property
    def moments(self) -> tuple[str, ...]:
        return (*self.left.moments, *self.right.moments)

    @property
    def largest(self) -> int:
        return max(self.left.largest, self.right.largest)

    def join(self, x: Tensor, y: Tensor) -> Tensor:
        return tf.reshape(x, [-1, *self.output]) + tf.reshape(y, [-1, *self.output])

    def infer(self, x: Tensor, values: Values) -> Tensor:
        return self.join(self.left.infer(x, values), self.right.infer(x, values))

    def forward(self, xs: Sequence[Tensor], source: BlockInput, run: Pass) -> Trace:
        left, right = (path.forward(xs, Branch(source), run) for path in (self.left, self.right))
        outputs = [self.join(*pair) for pair in zip(left.outputs, right.outputs)]
        return JoinedTrace(self, source, left, right, outputs)


@dataclass(frozen=True)
class Branch:
    """The input of one path; its gradient is gated once that of the other path is added."""

    source: BlockInput

    @property
    def takes_gradient(self) -> bool:
        return self.source.takes_gradient

    def again(self, part: int, *, after: Tensor) -> Tensor:
        return self.source.again(part, after=after)

    def gate(self, y: Tensor, dy: Tensor) -> Tensor:
        return dy


@dataclass(frozen=True)
class JoinedTrace(Trace):
    block: Joined
    source: BlockInput
    left: Trace
    right: Trace
    outputs: Sequence[Tensor]

    def again(self, part: int, *, after: Tensor) -> Tensor:
        return self.block.join(
            self.left.again(part, after=after), self.right.again(part, after=after)
        )

    def gate(self, y: Tensor, dy: Tensor) -> Tensor:
        return dy  # there is no activation after the sum

    def norms(self) -> Iterator[tuple[Any, tuple[str, str]]]:
        return chained(self.left.norms(), self.right.norms())

    def backward(self, gradients: Sequence[Tensor], step: Step) -> list[Tensor]:
        left, right = (self._path(path, gradients, step) for path in (self.left, self.right))
        found = []
        for part, (one, other) in enumerate(zip(left, right)):
            x = self.source.again(part, after=other)
            total = tf.reshape(one, x.shape) + tf.reshape(other, x.shape)
            found.append(self.source.gate(x, total))
        return found

    def _path(self, path: Trace, gradients: Sequence[Tensor], step: Step) -> list[Tensor]:
        gated = []
        for part, gradient in enumerate(gradients):
            y = path.again(part, after=gradient)
            gated.append(path.gate(y, tf.reshape(gradient, y.shape)))
        return path.backward(gated, step)
