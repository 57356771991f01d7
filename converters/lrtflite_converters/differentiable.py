"""Differentiable ops whose values and gradients are built-in TFLite ops.

TensorFlow's own gradients of a convolution, a ReLU or a softmax cross entropy do not convert, so
each op here brings its own: it returns its value and its pullback, a function from the gradient of
the value to the gradients of its inputs, in their order. Arrays are float32 with static shapes of
rank 4 at most.

Two things are written for speed. A product of rank 2 with weights that change becomes
FULLY_CONNECTED, which delegates do not take, so products are rank 3. Sums over rows are products
with a row of ones, because GEMM beats the SUM kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

import tensorflow as tf

Tensor = Any  # TensorFlow has no types
Gradients = tuple[Tensor, ...]
Pullback = Callable[[Tensor], Gradients]

# Turns any activation of at least 1e-30 into 1 when its product is clipped to -1..1.
_STEEP = 1e30


def matmul(a: Tensor, b: Tensor, *, transpose_b: bool = False) -> Tensor:
    """(M, K), (K, N) -> (M, N), as a product of rank 3.

    Reshapes, because `a[tf.newaxis]` and `[0]` become strided slices, which copy element by
    element: they took a fifth of a training step.
    """
    product = tf.matmul(
        tf.reshape(a, [1, *a.shape]), tf.reshape(b, [1, *b.shape]), transpose_b=transpose_b
    )
    return tf.reshape(product, product.shape[1:])


def pointwise(x: Tensor, kernel: Tensor) -> tuple[Tensor, Pullback]:
    """A 1x1 convolution, or a dense layer: (M, K), (K, N) -> (M, N)."""

    def pull(dy: Tensor) -> Gradients:
        return matmul(dy, kernel, transpose_b=True), matmul(tf.transpose(x), dy)

    return matmul(x, kernel), pull


def convolution(x: Tensor, kernel: Tensor, *, stride: int = 1) -> tuple[Tensor, Pullback]:
    """k x k, zero padding as SAME: (n, H, W, K), (k, k, K, N) -> (n, H/stride, W/stride, N)."""
    window = _Window.of(x, kernel, stride)

    def pull(dy: Tensor) -> Gradients:
        flipped = tf.transpose(_flip(kernel), [0, 1, 3, 2])
        dx = tf.nn.conv2d(window.spread(dy), flipped, 1, "VALID")
        rows = _rows(dy)
        taps = [matmul(tf.transpose(_rows(tap)), rows) for tap in window.taps(x)]
        return dx, tf.reshape(tf.stack(taps), kernel.shape)

    return tf.nn.conv2d(x, kernel, stride, "SAME"), pull


def depthwise(x: Tensor, kernel: Tensor, *, stride: int = 1) -> tuple[Tensor, Pullback]:
    """k x k per channel: (n, H, W, C), (k, k, C, 1) -> (n, H/stride, W/stride, C), as SAME."""
    window = _Window.of(x, kernel, stride)

    def pull(dy: Tensor) -> Gradients:
        dx = tf.nn.depthwise_conv2d(window.spread(dy), _flip(kernel), [1, 1, 1, 1], "VALID")
        rows = _rows(dy)
        taps = [_column_sums(_rows(tap) * rows) for tap in window.taps(x)]
        return dx, tf.reshape(tf.stack(taps), kernel.shape)

    return tf.nn.depthwise_conv2d(x, kernel, [1, stride, stride, 1], "SAME"), pull


@dataclass(frozen=True)
class Moments:
    """What Batch Renorm saw of a batch: mean (C,) and unbiased variance (C,)."""

    mean: Tensor
    variance: Tensor

    def moved(self, mean: Tensor, variance: Tensor, *, rate: Tensor) -> tuple[Tensor, Tensor]:
        """The moving moments after this batch; `rate` is the share of the new ones."""
        return mean + rate * (self.mean - mean), variance + rate * (self.variance - variance)


def batch_renorm(
    x: Tensor,
    gamma: Tensor,
    beta: Tensor,
    mean: Tensor,
    variance: Tensor,
    *,
    r_max: Tensor,
    d_max: Tensor,
    epsilon: float = 1e-5,
) -> tuple[Tensor, Moments, Pullback]:
    """Batch Renormalization in training mode: (M, C) -> (M, C).

    `mean` and `variance` (C,) are the moving moments from before this step. The gradient passes
    through the batch's own moments and not through r and d. The pullback gives dx, dgamma, dbeta.
    """
    count = float(x.shape[0])
    batch_mean = _column_sums(x) / count
    batch_variance = tf.maximum(_column_sums(x * x) / count - batch_mean * batch_mean, 0.0)
    batch_sigma, sigma = tf.sqrt(batch_variance + epsilon), tf.sqrt(variance + epsilon)
    r = tf.clip_by_value(batch_sigma / sigma, 1.0 / r_max, r_max)
    d = tf.clip_by_value((batch_mean - mean) / sigma, -d_max, d_max)
    scale = gamma * r / batch_sigma
    shift = gamma * d + beta - scale * batch_mean

    def pull(dy: Tensor) -> Gradients:
        # With x^ = (x - batch_mean) / batch_sigma: dx = scale (dy - mean(dy) - x^ mean(dy x^)),
        # which is a dy + b x + c with one a, b, c per channel.
        sum_dy = _column_sums(dy)
        sum_dy_x = (_column_sums(dy * x) - batch_mean * sum_dy) / batch_sigma
        b = -scale * sum_dy_x / (count * batch_sigma)
        c = -scale * sum_dy / count - b * batch_mean
        return scale * dy + (b * x + c), r * sum_dy_x + d * sum_dy, sum_dy

    unbiased = batch_variance * (count / (count - 1.0))
    return scale * x + shift, Moments(batch_mean, unbiased), pull


def relu(x: Tensor) -> tuple[Tensor, Pullback]:
    y = tf.nn.relu(x)

    def pull(dy: Tensor) -> Gradients:
        return (dy * _positive(y),)

    return y, pull


def relu6(x: Tensor) -> tuple[Tensor, Pullback]:
    y = tf.nn.relu6(x)

    def pull(dy: Tensor) -> Gradients:
        return (dy * _positive(y * (6.0 - y)),)

    return y, pull


def residual_add(x: Tensor, y: Tensor) -> tuple[Tensor, Pullback]:
    def pull(dz: Tensor) -> Gradients:
        return dz, dz

    return x + y, pull


def global_average_pool(x: Tensor) -> tuple[Tensor, Pullback]:
    """(n, H, W, C) -> (n, C)."""
    count, height, width, channels = x.shape

    def pull(dy: Tensor) -> Gradients:
        share = tf.reshape(dy, [count, 1, 1, channels]) / float(height * width)
        return (tf.tile(share, [1, height, width, 1]),)

    return tf.reduce_mean(x, axis=[1, 2]), pull


def softmax_cross_entropy(scores: Tensor, targets: Tensor) -> tuple[Tensor, Pullback]:
    """Mean over the rows of (M, C) scores and targets, which may be soft; no gradient to these."""
    log_p = tf.nn.log_softmax(scores)

    def pull(dy: Tensor) -> Gradients:
        totals = tf.reduce_sum(targets, axis=-1, keepdims=True)
        return (dy * (tf.exp(log_p) * totals - targets) / float(scores.shape[0]),)

    return -tf.reduce_mean(tf.reduce_sum(targets * log_p, axis=-1)), pull


@dataclass(frozen=True)
class _Window:
    """Where a k x k kernel with a stride stands on an image, padded as SAME."""

    size: int
    stride: int
    image: tuple[int, int]
    steps: tuple[int, int]
    before: tuple[int, int]  # rows above and columns to the left that the padding adds

    @classmethod
    def of(cls, x: Tensor, kernel: Tensor, stride: int) -> _Window:
        size, image = kernel.shape[0], (x.shape[1], x.shape[2])
        steps = (-(-image[0] // stride), -(-image[1] // stride))
        padding = [
            max((step - 1) * stride + size - side, 0) // 2 for step, side in zip(steps, image)
        ]
        return cls(size, stride, image, steps, (padding[0], padding[1]))

    def spread(self, dy: Tensor) -> Tensor:
        """dy with zeros between and around, so that a VALID product with a flipped kernel fits."""
        count, rows, columns, channels = dy.shape
        gap = self.stride - 1
        if gap:
            # Zeros after each row, then after each column, in rank 4.
            dy = tf.reshape(dy, [count * rows, 1, columns, channels])
            dy = tf.pad(dy, [[0, 0], [0, gap], [0, 0], [0, 0]])
            dy = tf.reshape(dy, [count * rows * self.stride, columns, 1, channels])
            dy = tf.pad(dy, [[0, 0], [0, 0], [0, gap], [0, 0]])
            rows, columns = rows * self.stride, columns * self.stride
            dy = tf.reshape(dy, [count, rows, columns, channels])
            rows, columns = rows - gap, columns - gap
            dy = tf.slice(dy, [0, 0, 0, 0], [count, rows, columns, channels])
        edges = [
            [self.size - 1 - before, side + before - found]
            for before, side, found in zip(self.before, self.image, (rows, columns))
        ]
        return tf.pad(dy, [[0, 0], *edges, [0, 0]])

    def taps(self, x: Tensor) -> list[Tensor]:
        """What each of the k * k weights sees: (n, steps, steps, C) each, in the kernel's order."""
        count, channels, stride = x.shape[0], x.shape[3], self.stride
        sides = [-(-(self.size - 1 + step * stride) // stride) * stride for step in self.steps]
        edges = [
            [before, side - found - before]
            for before, side, found in zip(self.before, sides, self.image)
        ]
        x = tf.pad(x, [[0, 0], *edges, [0, 0]])
        high, wide = sides[0] // stride, sides[1] // stride
        # A strided slice is slow: each phase of the stride is cut out once by a reshape instead.
        x = tf.reshape(x, [count * high, stride, wide, stride * channels])
        phases = {
            (i, j): tf.reshape(
                tf.slice(x, [0, i, 0, j * channels], [count * high, 1, wide, channels]),
                [count, high, wide, channels],
            )
            for i in range(min(stride, self.size))
            for j in range(min(stride, self.size))
        }
        return [
            tf.slice(
                phases[i % stride, j % stride],
                [0, i // stride, j // stride, 0],
                [count, *self.steps, channels],
            )
            for i in range(self.size)
            for j in range(self.size)
        ]


def _flip(kernel: Tensor) -> Tensor:
    """A kernel (k, k, ...) turned by 180 degrees.

    tflite-runtime 2.14 reverses the first of several axes only, and says nothing.
    """
    k, _, inputs, outputs = kernel.shape
    turned = tf.reverse(tf.reshape(kernel, [k * k, inputs, outputs]), [0])
    return tf.reshape(turned, kernel.shape)


def _column_sums(x: Tensor) -> Tensor:
    """(M, C) -> (C,)."""
    return tf.reshape(matmul(tf.ones([1, x.shape[0]]), x), [x.shape[1]])


def _rows(x: Tensor) -> Tensor:
    """(n, H, W, C) -> (n * H * W, C)."""
    return tf.reshape(x, [-1, x.shape[-1]])


def _positive(y: Tensor) -> Tensor:
    """1 where y > 0 and 0 where y = 0; y is not negative. Comparisons are slow and give bools."""
    return tf.minimum(y * _STEEP, 1.0)
