"""A residual block: its input is added to the output of a chain of blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from lrtflite_converters.blocks.block import (
    Block,
    BlockInput,
    Chain,
    Limits,
    Shape,
    Step,
    Trace,
    Values,
)
from lrtflite_converters.window import Tensor


@dataclass(frozen=True)
class Residual(Block):
    """x + inner(x)."""

    inner: Chain

    @property
    def image(self) -> Shape:  # type: ignore[override]
        return self.inner.image

    @property
    def output(self) -> Shape:  # type: ignore[override]
        return self.inner.output

    @property
    def tensors(self) -> dict[str, Any]:
        return self.inner.tensors

    @property
    def trained(self) -> dict[str, bool]:
        return self.inner.trained

    @property
    def moments(self) -> tuple[str, ...]:
        return self.inner.moments

    @property
    def largest(self) -> int:
        return self.inner.largest

    def join(self, x: Tensor, y: Tensor) -> Tensor:
        return tf.reshape(x, [-1, *self.image]) + tf.reshape(y, [-1, *self.image])

    def infer(self, x: Tensor, values: Values) -> Tensor:
        return self.join(x, self.inner.infer(x, values))

    def forward(
        self,
        xs: Sequence[Tensor],
        source: BlockInput,
        values: Values,
        limits: Limits | None,
        *,
        frozen: bool,
    ) -> Trace:
        inner = self.inner.forward(xs, Branch(source), values, limits, frozen=frozen)
        joined = [self.join(x, y) for x, y in zip(xs, inner.outputs)]
        return ResidualTrace(self, source, inner, joined)


@dataclass(frozen=True)
class Branch:
    """The input of the inner chain; its gradient is gated after the other path's is added."""

    source: BlockInput

    @property
    def takes_gradient(self) -> bool:
        return self.source.takes_gradient

    def again(self, part: int, *, after: Tensor) -> Tensor:
        return self.source.again(part, after=after)

    def gate(self, y: Tensor, dy: Tensor) -> Tensor:
        return dy


@dataclass(frozen=True)
class ResidualTrace(Trace):
    block: Residual
    source: BlockInput
    inner: Trace
    outputs: Sequence[Tensor]

    def again(self, part: int, *, after: Tensor) -> Tensor:
        x = self.source.again(part, after=after)
        return self.block.join(x, self.inner.again(part, after=after))

    def gate(self, y: Tensor, dy: Tensor) -> Tensor:
        return dy  # there is no activation after the sum

    def norms(self) -> Iterator[tuple[Any, tuple[str, str]]]:
        return self.inner.norms()

    def backward(self, gradients: Sequence[Tensor], step: Step) -> list[Tensor]:
        inner = []
        for part, gradient in enumerate(gradients):
            y = self.inner.again(part, after=gradient)
            inner.append(self.inner.gate(y, tf.reshape(gradient, y.shape)))
        below = self.inner.backward(inner, step)
        found = []
        for part, (dx, gradient) in enumerate(zip(below, gradients)):
            x = self.source.again(part, after=dx)
            total = tf.reshape(dx, x.shape) + tf.reshape(gradient, x.shape)
            found.append(self.source.gate(x, total))
        return found
