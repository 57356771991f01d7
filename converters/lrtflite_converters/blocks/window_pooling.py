"""Pooling over windows, and the maximum over all pixels, as blocks."""

from __future__ import annotations

from dataclasses import dataclass

import tensorflow as tf

from lrtflite_converters.blocks.block import Shape
from lrtflite_converters.blocks.weightless import Weightless
from lrtflite_converters.gradients.window import Tensor, Window

# Value of the places around an image, below any activation.
LOWEST = -1e30


@dataclass(frozen=True)
class WindowPooling(Weightless):
    """The maximum or the mean of each window: (n, H, W, C) -> (n, H', W', C)."""

    image: Shape
    output: Shape
    size: int
    stride: int
    same: bool
    maximum: bool

    def value(self, x: Tensor) -> Tensor:
        x = tf.reshape(x, [-1, *self.image])
        pool = tf.nn.max_pool2d if self.maximum else tf.nn.avg_pool2d
        return pool(x, self.size, self.stride, "SAME" if self.same else "VALID")

    def pull(self, x: Tensor, dy: Tensor) -> Tensor:
        x, dy = tf.reshape(x, [-1, *self.image]), tf.reshape(dy, [-1, *self.output])
        edges = None if self.same else ((0, 0), (0, 0))
        window = Window.of(x, tf.zeros([self.size, self.size]), self.stride, edges)
        if not self.maximum:
            share = dy / float(self.size**2)
            return window.gather([share] * self.size**2)
        y, free, shares = self.value(x), tf.ones_like(dy), []
        for tap in window.taps(x, around=LOWEST):
            # The first of several equal values gets the gradient, as in TensorFlow.
            chosen = tf.cast(tf.equal(tap, y), tf.float32) * free
            free = free - chosen
            shares.append(chosen * dy)
        return window.gather(shares)


@dataclass(frozen=True)
class GlobalMaximum(Weightless):
    """The maximum over all pixels: (n, H, W, C) -> (n, C)."""

    image: Shape

    @property
    def output(self) -> Shape:  # type: ignore[override]
        return self.image[-1:]

    def value(self, x: Tensor) -> Tensor:
        return tf.reduce_max(tf.reshape(x, [-1, *self.image]), axis=[1, 2])

    def pull(self, x: Tensor, dy: Tensor) -> Tensor:
        x = tf.reshape(x, [-1, *self.image])
        y = tf.reshape(self.value(x), [-1, 1, 1, *self.output])
        chosen = tf.cast(tf.equal(x, y), tf.float32)
        share = dy / tf.reduce_sum(chosen, axis=[1, 2])  # equal values share it
        return chosen * tf.reshape(share, [-1, 1, 1, *self.output])
