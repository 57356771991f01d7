"""Differentiable ops whose values and gradients are built-in TFLite ops.

TensorFlow's own gradients of a convolution, a ReLU or a softmax cross entropy do not convert, so
each op here brings its own: it returns its value and its pullback, a function from the gradient of
the value to the gradients of its inputs, in their order. Arrays are float32 with static shapes of
rank 4 at most.

A product of rank 2 with weights that change becomes FULLY_CONNECTED, which delegates do not take,
so products are rank 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Callable, Optional

import tensorflow as tf

Tensor = Any  # TensorFlow has no types
Gradients = tuple[Tensor, ...]
Pullback = Callable[[Tensor], Gradients]
# Rows of zeros above and below an image, columns to its left and right; None pads as SAME.
Edges = Optional[tuple[tuple[int, int], tuple[int, int]]]

# Turns any activation of at least 1e-30 into 1 when its product is clipped to -1..1.
_STEEP = 1e30


def matmul(a: Tensor, b: Tensor, *, transpose_b: bool = False) -> Tensor:
    """(M, K), (K, N) -> (M, N), as a product of rank 3; (1, M, K) gives (1, M, N).

    Reshapes, because `a[tf.newaxis]` and `[0]` become strided slices, which copy element by
    element: they took a fifth of a training step.
    """
    product = tf.matmul(_rank_3(a), _rank_3(b), transpose_b=transpose_b)
    return product if len(a.shape) == 3 else tf.reshape(product, product.shape[1:])


def pointwise(x: Tensor, kernel: Tensor) -> tuple[Tensor, Pullback]:
    """A 1x1 convolution, or a dense layer: (M, K) or (1, M, K), (K, N) -> the same with N."""

    def pull(dy: Tensor) -> Gradients:
        dkernel = matmul(tf.linalg.matrix_transpose(x), dy)
        return matmul(dy, kernel, transpose_b=True), tf.reshape(dkernel, kernel.shape)

    return matmul(x, kernel), pull


def convolution(
    x: Tensor, kernel: Tensor, *, stride: int = 1, edges: Edges = None
) -> tuple[Tensor, Pullback]:
    """k x k with zero padding: (n, H, W, K), (k, k, K, N) -> (n, H/stride, W/stride, N)."""
    window = _Window.of(x, kernel, stride, edges)

    def pull(dy: Tensor) -> Gradients:
        flipped = tf.transpose(_flip(kernel), [0, 1, 3, 2])
        dx = tf.nn.conv2d(window.spread(dy), flipped, 1, "VALID")
        rows = _rows(dy)
        taps = [matmul(tf.transpose(_rows(tap)), rows) for tap in window.taps(x)]
        return dx, tf.reshape(tf.stack(taps), kernel.shape)

    wide, padding = _padded(x, edges)
    return tf.nn.conv2d(wide, kernel, stride, padding), pull


def depthwise(
    x: Tensor, kernel: Tensor, *, stride: int = 1, edges: Edges = None
) -> tuple[Tensor, Pullback]:
    """k x k per channel: (n, H, W, C), (k, k, C, 1) -> (n, H/stride, W/stride, C)."""
    window = _Window.of(x, kernel, stride, edges)

    def pull(dy: Tensor) -> Gradients:
        flipped = _flip(kernel)
        if stride == 1 and edges is None and kernel.shape[0] % 2:
            dx = _depthwise(dy, flipped, 1, "SAME")  # the same, without a padded copy
        else:
            dx = _depthwise(window.spread(dy), flipped, 1, "VALID")
        taps = [_column_sums(tap * dy) for tap in window.taps(x)]
        return dx, tf.reshape(tf.stack(taps), kernel.shape)

    wide, padding = _padded(x, edges)
    return _depthwise(wide, kernel, stride, padding), pull


@dataclass(frozen=True)
class Renorm:
    """What Batch Renorm in training mode does to one batch: y = scale * x + shift per channel.

    The batch may come in parts, which share nothing but their sums; so a large batch never needs
    more than a part's worth of intermediate arrays.
    """

    scale: Tensor  # (C,), as all below
    shift: Tensor
    r: Tensor
    d: Tensor
    mean: Tensor
    sigma: Tensor
    unbiased: Tensor
    count: float

    @classmethod
    def of(
        cls,
        parts: Sequence[Tensor],
        gamma: Tensor,
        beta: Tensor,
        mean: Tensor,
        variance: Tensor,
        *,
        r_max: Tensor,
        d_max: Tensor,
        epsilon: float = 1e-5,
    ) -> Renorm:
        """`parts` are (..., C); `mean` and `variance` the moving moments from before this step."""
        count = float(sum(math.prod(x.shape[:-1]) for x in parts))
        batch_mean = _total(_column_sums(x) for x in parts) / count
        # Not the mean of squares less the square of the mean, which cancels in float32.
        squares = _total(_column_sums(tf.math.squared_difference(x, batch_mean)) for x in parts)
        batch_variance = squares / count
        batch_sigma, sigma = tf.sqrt(batch_variance + epsilon), tf.sqrt(variance + epsilon)
        r = tf.clip_by_value(batch_sigma / sigma, 1.0 / r_max, r_max)
        d = tf.clip_by_value((batch_mean - mean) / sigma, -d_max, d_max)
        scale = gamma * r / batch_sigma
        return cls(
            scale=scale,
            shift=gamma * d + beta - scale * batch_mean,
            r=r,
            d=d,
            mean=batch_mean,
            sigma=batch_sigma,
            unbiased=batch_variance * (count / (count - 1.0)),
            count=count,
        )

    def __call__(self, x: Tensor) -> Tensor:
        return self.scale * x + self.shift

    def moved(self, mean: Tensor, variance: Tensor, *, rate: Tensor) -> tuple[Tensor, Tensor]:
        """The moving moments after this batch; `rate` is the share of the new ones."""
        return mean + rate * (self.mean - mean), variance + rate * (self.unbiased - variance)

    def pull(
        self, parts: Sequence[Tensor], dys: Sequence[Tensor]
    ) -> tuple[list[Tensor], Tensor, Tensor]:
        """dx of each part, dgamma, dbeta: through the batch's moments, not through r and d."""
        # With x^ = (x - mean) / sigma: dx = scale (dy - mean(dy) - x^ mean(dy x^)), which is
        # a dy + b x + c with one a, b, c per channel.
        sum_dy = _total(_column_sums(dy) for dy in dys)
        products = _total(_column_sums(dy * x) for x, dy in zip(parts, dys))
        sum_dy_x = (products - self.mean * sum_dy) / self.sigma
        b = -self.scale * sum_dy_x / (self.count * self.sigma)
        c = -self.scale * sum_dy / self.count - b * self.mean
        dxs = [self.scale * dy + (b * x + c) for x, dy in zip(parts, dys)]
        return dxs, self.r * sum_dy_x + self.d * sum_dy, sum_dy


@dataclass(frozen=True)
class Activation:
    """An activation whose slope, 0 or 1, can be told from its own value."""

    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]

    def __call__(self, x: Tensor) -> tuple[Tensor, Pullback]:
        y = self.value(x)

        def pull(dy: Tensor) -> Gradients:
            return (dy * self.slope(y),)

        return y, pull


def _positive(y: Tensor) -> Tensor:
    """1 where y > 0 and 0 where y = 0; y is not negative. Comparisons are slow and give bools."""
    return _clipped(y * _STEEP)


def _clipped(y: Tensor) -> Tensor:
    """To -1..1, which becomes part of the product before it."""
    return tf.clip_by_value(y, -1.0, 1.0)


relu = Activation(tf.nn.relu, _positive)
relu6 = Activation(tf.nn.relu6, lambda y: _clipped((y * _STEEP) * (6.0 - y)))


def after(vector: Tensor, trigger: Tensor) -> Tensor:
    """`vector`, not to be computed before `trigger` is.

    What the backward pass needs of the forward one is cheaper to compute again than to keep, but
    a converter merges equal expressions, and a runtime computes what it can as early as it can.
    This adds a zero that only the trigger gives.
    """
    rank = len(trigger.shape)
    one = tf.reshape(tf.slice(trigger, [0] * rank, [1] * rank), [1])
    return vector + tf.minimum(tf.maximum(one, 0.0), 0.0)


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
    """Where a k x k kernel with a stride stands on a padded image."""

    size: int
    stride: int
    image: tuple[int, int]
    steps: tuple[int, int]
    before: tuple[int, int]  # rows above and columns to the left that the padding adds

    @classmethod
    def of(cls, x: Tensor, kernel: Tensor, stride: int, edges: Edges) -> _Window:
        size, image = kernel.shape[0], (x.shape[1], x.shape[2])
        if edges is None:
            steps = [-(-side // stride) for side in image]
            missing = [(step - 1) * stride + size - side for step, side in zip(steps, image)]
            before = [max(rows, 0) // 2 for rows in missing]
        else:
            steps = [(side + sum(e) - size) // stride + 1 for side, e in zip(image, edges)]
            before = [first for first, _ in edges]
        return cls(size, stride, image, (steps[0], steps[1]), (before[0], before[1]))

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


def _padded(x: Tensor, edges: Edges) -> tuple[Tensor, str]:
    """What a convolution takes, and the padding it is left to do."""
    return (x, "SAME") if edges is None else (tf.pad(x, [[0, 0], *edges, [0, 0]]), "VALID")


def _depthwise(x: Tensor, kernel: Tensor, stride: int, padding: str) -> Tensor:
    return tf.nn.depthwise_conv2d(x, kernel, [1, stride, stride, 1], padding)


def _rank_3(x: Tensor) -> Tensor:
    return x if len(x.shape) == 3 else tf.reshape(x, [1, *x.shape])


def _column_sums(x: Tensor) -> Tensor:
    """(..., C) -> (C,)."""
    return tf.reduce_sum(x, axis=list(range(len(x.shape) - 1)))


def _total(terms: Iterable[Tensor]) -> Tensor:
    first, *others = terms
    for term in others:
        first = first + term
    return first


def _rows(x: Tensor) -> Tensor:
    """(n, H, W, C) -> (n * H * W, C)."""
    return tf.reshape(x, [-1, x.shape[-1]])
