"""Differentiable ops whose values and gradients are built-in TFLite ops.

TensorFlow's own gradients of a convolution, a ReLU or a softmax cross entropy do not convert, so
each op here has its own gradient. It returns its value and its pullback, a function from the
gradient of the value to the gradients of the inputs, in their order. Arrays are float32 with static
shapes of at most rank 4.

A product of rank 2 with weights that change becomes FULLY_CONNECTED, which delegates do not
support, so products have rank 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Callable

import tensorflow as tf

from lrtflite_converters.gradients.window import Edges, Tensor, Window

Gradients = tuple[Tensor, ...]
Pullback = Callable[[Tensor], Gradients]
# A depthwise convolution becomes a product if it has at most this many pixel links and at least
# this many patterns. With fewer patterns, building the matrices takes longer than it saves.
MAX_LINKS = 1024
FEWEST_PATTERNS = 8
# Factor that turns any activation of at least 1e-30 into 1 once the product is clipped to -1..1.
_STEEP = 1e30


def matmul(a: Tensor, b: Tensor, *, transpose_b: bool = False) -> Tensor:
    """Multiply (M, K), (K, N) -> (M, N), as a product of rank 3; (1, M, K) gives (1, M, N).

    This uses reshapes, because `a[tf.newaxis]` and `[0]` become strided slices, which copy element
    by element and took a fifth of a training step.
    """
    product = tf.matmul(_rank_3(a), _rank_3(b), transpose_b=transpose_b)
    return product if len(a.shape) == 3 else tf.reshape(product, product.shape[1:])


def pointwise(x: Tensor, kernel: Tensor) -> tuple[Tensor, Pullback]:
    """Apply a 1x1 convolution, or a dense layer: (M, K), (K, N) -> (M, N).

    Both may have a leading axis of 1; the value has one if `x` has.
    """

    def pull(dy: Tensor) -> Gradients:
        dkernel = matmul(tf.linalg.matrix_transpose(x), dy)
        return matmul(dy, kernel, transpose_b=True), tf.reshape(dkernel, kernel.shape)

    return matmul(x, kernel), pull


def convolution(
    x: Tensor, kernel: Tensor, *, stride: int = 1, edges: Edges = None
) -> tuple[Tensor, Pullback]:
    """Convolve with zero padding: (n, H, W, K), (k, k, K, N) -> (n, H/stride, W/stride, N)."""
    window = Window.of(x, kernel, stride, edges)

    def pull(dy: Tensor) -> Gradients:
        flipped = tf.transpose(_flip(kernel), [0, 1, 3, 2])
        dx = tf.nn.conv2d(window.spread(dy), flipped, 1, "VALID")
        rows = _rows(dy)
        taps = [matmul(tf.transpose(_rows(tap)), rows) for tap in window.taps(x)]
        return dx, tf.reshape(tf.stack(taps), kernel.shape)

    wide, padding = _padded(x, edges)
    return tf.nn.conv2d(wide, kernel, stride, padding), pull


def depthwise(
    x: Tensor, kernel: Tensor, *, stride: int = 1, edges: Edges = None, constant: bool = False
) -> tuple[Tensor, Pullback]:
    """Convolve per channel: (n, H, W, C), (k, k, C, 1) -> (n, H/stride, W/stride, C).

    With a `constant` kernel, the built-in op is used, which a delegate runs fastest.
    """
    window = Window.of(x, kernel, stride, edges)
    small = window.links <= MAX_LINKS and (x.shape[0] or 0) >= FEWEST_PATTERNS
    if small and not constant:
        return _depthwise_product(x, kernel, window)

    def pull(dy: Tensor) -> Gradients:
        flipped = _flip(kernel)
        if stride == 1 and edges is None and kernel.shape[0] % 2:
            dx = _depthwise(dy, flipped, 1, "SAME")  # same result, without a padded copy
        else:
            dx = _depthwise(window.spread(dy), flipped, 1, "VALID")
        taps = [column_sums(tap * dy) for tap in window.taps(x)]
        return dx, tf.reshape(tf.stack(taps), kernel.shape)

    wide, padding = _padded(x, edges)
    return _depthwise(wide, kernel, stride, padding), pull


def _depthwise_product(x: Tensor, kernel: Tensor, window: Window) -> tuple[Tensor, Pullback]:
    """Convolve by one product per channel: an image's pixels times a matrix of mostly zeros.

    This does more arithmetic, but on a small image it is faster than a loop over pixels and
    channels.
    """
    count, channels = x.shape[0], x.shape[3]
    pixels, steps = math.prod(window.image), math.prod(window.steps)
    places = tf.constant(window.matrices().reshape(-1, pixels * steps))

    def by_channel(array: Tensor) -> Tensor:
        return tf.transpose(tf.reshape(array, [-1, channels]))

    def by_place(array: Tensor) -> Tensor:
        return tf.transpose(tf.reshape(array, [channels, -1]))

    matrices = tf.reshape(matmul(by_channel(kernel), places), [channels, pixels, steps])
    images = tf.reshape(by_channel(x), [channels, count, pixels])

    def pull(dy: Tensor) -> Gradients:
        dys = tf.reshape(by_channel(dy), [channels, count, steps])
        dx = by_place(tf.matmul(dys, matrices, transpose_b=True))
        dmatrices = tf.matmul(images, dys, transpose_a=True)
        dkernel = matmul(tf.reshape(dmatrices, [channels, -1]), places, transpose_b=True)
        return tf.reshape(dx, x.shape), tf.reshape(by_place(dkernel), kernel.shape)

    y = by_place(tf.matmul(images, matrices))
    return tf.reshape(y, [count, *window.steps, channels]), pull


@dataclass(frozen=True)
class Activation:
    """An activation whose slope, 0 or 1, follows from its value; None means 1 everywhere."""

    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor] | None

    def gate(self, y: Tensor, dy: Tensor) -> Tensor:
        """Turn the gradient `dy` of the value `y` into that of the input."""
        return dy if self.slope is None else self.slope(y) * dy


def _positive(y: Tensor) -> Tensor:
    """Return 1 where y > 0 and 0 where y = 0, for y >= 0, without comparisons, which are slow."""
    return _clipped(y * _STEEP)


def _clipped(y: Tensor) -> Tensor:
    """Clip to -1..1, which the converter fuses with the product before it."""
    return tf.clip_by_value(y, -1.0, 1.0)


linear = Activation(lambda x: x, None)
relu = Activation(tf.nn.relu, _positive)
relu6 = Activation(tf.nn.relu6, lambda y: _clipped((y * _STEEP) * (6.0 - y)))


def global_average_pool(x: Tensor) -> tuple[Tensor, Pullback]:
    """Average (n, H, W, C) -> (n, C); the gradient is (n, 1, 1, C), equal for all pixels."""
    _, height, width, channels = x.shape

    def pull(dy: Tensor) -> Gradients:
        return (tf.reshape(dy / float(height * width), [-1, 1, 1, channels]),)

    return tf.reduce_mean(x, axis=[1, 2]), pull


def softmax_cross_entropy(scores: Tensor, targets: Tensor) -> tuple[Tensor, Pullback]:
    """Return the mean loss of (M, C) scores; targets may be soft, and get no gradient."""
    log_p = tf.nn.log_softmax(scores)

    def pull(dy: Tensor) -> Gradients:
        totals = tf.reduce_sum(targets, axis=-1, keepdims=True)
        return (dy * (tf.exp(log_p) * totals - targets) / float(scores.shape[0]),)

    return -tf.reduce_mean(tf.reduce_sum(targets * log_p, axis=-1)), pull


def _flip(kernel: Tensor) -> Tensor:
    """Rotate a kernel (k, k, ...) by 180 degrees.

    One axis is reversed, because tflite-runtime 2.14 silently reverses only the first of several.
    """
    k, _, inputs, outputs = kernel.shape
    turned = tf.reverse(tf.reshape(kernel, [k * k, inputs, outputs]), [0])
    return tf.reshape(turned, kernel.shape)


def _padded(x: Tensor, edges: Edges) -> tuple[Tensor, str]:
    """Return the padded input, and the padding argument of the convolution."""
    return (x, "SAME") if edges is None else (tf.pad(x, [[0, 0], *edges, [0, 0]]), "VALID")


def _depthwise(x: Tensor, kernel: Tensor, stride: int, padding: str) -> Tensor:
    return tf.nn.depthwise_conv2d(x, kernel, [1, stride, stride, 1], padding)


def _rank_3(x: Tensor) -> Tensor:
    return x if len(x.shape) == 3 else tf.reshape(x, [1, *x.shape])


def _rows(x: Tensor) -> Tensor:
    """Reshape (n, H, W, C) -> (n * H * W, C)."""
    return tf.reshape(x, [-1, x.shape[-1]])


def column_sums(x: Tensor) -> Tensor:
    """Sum (..., C) -> (C,)."""
    return tf.reduce_sum(x, axis=list(range(len(x.shape) - 1)))
