"""Where a k x k kernel stands on an image: what it sees, as slices and as a matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

Tensor = Any  # TensorFlow has no types
# Rows of zeros above and below an image, columns to its left and right; None pads as SAME.
Edges = Optional[tuple[tuple[int, int], tuple[int, int]]]


@dataclass(frozen=True)
class Window:
    """Where a k x k kernel with a stride stands on a padded image."""

    size: int
    stride: int
    image: tuple[int, int]
    steps: tuple[int, int]
    before: tuple[int, int]  # rows above and columns to the left that the padding adds

    @classmethod
    def of(cls, x: Tensor, kernel: Tensor, stride: int, edges: Edges) -> Window:
        size, image = kernel.shape[0], (x.shape[1], x.shape[2])
        if edges is None:
            steps = [-(-side // stride) for side in image]
            missing = [(step - 1) * stride + size - side for step, side in zip(steps, image)]
            before = [max(rows, 0) // 2 for rows in missing]
        else:
            steps = [(side + sum(e) - size) // stride + 1 for side, e in zip(image, edges)]
            before = [first for first, _ in edges]
        return cls(size, stride, image, (steps[0], steps[1]), (before[0], before[1]))

    @property
    def links(self) -> int:
        """Pairs of a pixel that comes in and one that goes out, near or not."""
        return math.prod(self.image) * math.prod(self.steps)

    def matrices(self) -> NDArray[np.float32]:
        """(k * k, pixels in, pixels out): 1 where a weight leads from the one to the other."""
        rows, columns = (self._sees(axis) for axis in (0, 1))
        found = np.einsum("iar,jbc->ijabrc", rows, columns)
        shape = (self.size**2, math.prod(self.image), math.prod(self.steps))
        return found.reshape(shape).astype(np.float32)

    def _sees(self, axis: int) -> NDArray[np.bool_]:
        """(k, side in, steps): whether that row of the kernel, at that step, is on that row."""
        weight, place, step = np.ogrid[: self.size, : self.image[axis], : self.steps[axis]]
        return np.asarray(place == step * self.stride + weight - self.before[axis])

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
