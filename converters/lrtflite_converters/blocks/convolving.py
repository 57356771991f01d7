"""The linear part of a block: a convolution or a dense layer, in the rank that suits its kind."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from lrtflite_converters.blocks.block import Shape
from lrtflite_converters.gradients import differentiable as ops
from lrtflite_converters.gradients.differentiable import Pullback
from lrtflite_converters.gradients.window import Edges, Tensor


class Convolving:
    """A linear layer with a name, for blocks that add a norm or a bias and an activation.

    `kind` is "pointwise", "depthwise", "convolution", "dense", or "none" for a block without one.
    """

    name: str
    kind: str
    image: Shape  # height, width and channels of the input, or the length of a vector
    output: Shape
    stride: int
    edges: Edges

    def named(self, tensor: str) -> str:
        """Return a tensor's name in the model, without slashes, which signatures do not allow."""
        return f"{self.name.replace('/', '_')}_{tensor}"

    def convolve(
        self, x: Tensor, kernel: Any, *, constant: bool = False
    ) -> tuple[Tensor, Pullback]:
        """Convolve in the rank that suits the kind; a `constant` kernel never changes.

        The pullback returns the gradients of the input and of the kernel.
        """
        if self.kind == "none":
            return tf.reshape(x, [-1, *self.image]), lambda dy: (dy, None)
        if self.kind == "pointwise":
            return ops.pointwise(tf.reshape(x, [1, -1, self.image[2]]), kernel)
        if self.kind == "dense":
            y, pull = ops.pointwise(tf.reshape(x, [1, -1, *self.image]), kernel)
            # The last block of a trunk gives rows of features.
            return (
                tf.reshape(y, [-1, *self.output]),
                lambda dy: pull(tf.reshape(dy, [1, -1, *self.output])),
            )
        x = tf.reshape(x, [-1, *self.image])
        if self.kind == "convolution":
            return ops.convolution(x, kernel, stride=self.stride, edges=self.edges)
        return ops.depthwise(x, kernel, stride=self.stride, edges=self.edges, constant=constant)
