"""Global average pooling as a block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from lrtflite_converters.blocks.block import Block, BlockInput, Pass, Shape, Step, Trace, Values
from lrtflite_converters.gradients.differentiable import global_average_pool
from lrtflite_converters.gradients.window import Tensor


@dataclass(frozen=True)
class Pooling(Block):
    """The mean over all pixels: (n, H, W, C) -> (n, C)."""

    image: Shape

    @property
    def output(self) -> Shape:  # type: ignore[override]
        return self.image[-1:]

    @property
    def tensors(self) -> dict[str, Any]:
        return {}

    def pool(self, x: Tensor) -> tuple[Tensor, Any]:
        return global_average_pool(tf.reshape(x, [-1, *self.image]))

    def infer(self, x: Tensor, values: Values) -> Tensor:
        return self.pool(x)[0]

    def forward(self, xs: Sequence[Tensor], source: BlockInput, run: Pass) -> Trace:
        return PoolingTrace(self, source, [self.pool(x)[0] for x in xs])


@dataclass(frozen=True)
class PoolingTrace(Trace):
    pooling: Pooling
    source: BlockInput
    outputs: Sequence[Tensor]

    def again(self, part: int, *, after: Tensor) -> Tensor:
        return self.pooling.pool(self.source.again(part, after=after))[0]

    def gate(self, y: Tensor, dy: Tensor) -> Tensor:
        return dy

    def backward(self, gradients: Sequence[Tensor], step: Step) -> list[Tensor]:
        if not self.source.takes_gradient:
            return []
        found = []
        for part, gradient in enumerate(gradients):
            x = self.source.again(part, after=gradient)
            image = tf.reshape(x, [-1, *self.pooling.image])
            (dimage,) = self.pooling.pool(image)[1](gradient)
            dimage = self.source.gate(image, dimage)
            if dimage.shape != image.shape:  # without an activation, it is still (n, 1, 1, C)
                dimage = tf.broadcast_to(dimage, image.shape)
            found.append(tf.reshape(dimage, x.shape))
        return found
