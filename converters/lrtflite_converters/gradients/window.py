"""The positions of a k x k kernel on an image, as slices and as a matrix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

Tensor = Any  # TensorFlow has no type hints
# Rows of zeros above and below an image, columns to its left and right; None pads as SAME.
Edges = Optional[tuple[tuple[int, int], tuple[int, int]]]


@dataclass(frozen=True)
class Window:
    """The positions of a k x k kernel with a stride on a padded image."""

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
        """Return the number of pairs of an input pixel and an output pixel, near or far."""
        return math.prod(self.image) * math.prod(self.steps)

    def matrices(self) -> NDArray[np.float32]:
        """Return (k * k, input pixels, output pixels): 1 where a weight links the two pixels."""
        rows, columns = (self._sees(axis) for axis in (0, 1))
        found = np.einsum("iar,jbc->ijabrc", rows, columns)
        shape = (self.size**2, math.prod(self.image), math.prod(self.steps))
        return found.reshape(shape).astype(np.float32)

    def _sees(self, axis: int) -> NDArray[np.bool_]:
        """Return (k, input side, steps): True where a kernel row lies on an input row."""
        weight, place, step = np.ogrid[: self.size, : self.image[axis], : self.steps[axis]]
        return np.asarray(place == step * self.stride + weight - self.before[axis])

    def spread(self, dy: Tensor) -> Tensor:
        """Return dy with zeros between and around it, for a VALID convolution."""
        count, rows, columns, channels = dy.shape
        gap = self.stride - 1
        if gap:
            # Add zeros after each row, then after each column, in rank 4.
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

    def gather(self, dtaps: Sequence[Tensor]) -> Tensor:
        """Return the gradient of the image from those of its k * k taps, in kernel order."""
        found = None
        for number, dtap in enumerate(dtaps):
            i, j = divmod(number, self.size)
            first = [0, self.size - 1 - i, self.size - 1 - j, 0]
            wide = self.spread(dtap)
            part = tf.slice(wide, first, [wide.shape[0], *self.image, wide.shape[3]])
            found = part if found is None else found + part
        return found

    def taps(self, x: Tensor, *, around: float = 0.0) -> list[Tensor]:
        """Return the input of each of the k * k weights, (n, steps, steps, C), in kernel order.

        `around` is the value of the places outside the image.
        """
        count, channels, stride = x.shape[0], x.shape[3], self.stride
        sides = [-(-(self.size - 1 + step * stride) // stride) * stride for step in self.steps]
        edges = [
            [before, side - found - before]
            for before, side, found in zip(self.before, sides, self.image)
        ]
        x = tf.pad(x, [[0, 0], *edges, [0, 0]], constant_values=around)
        high, wide = sides[0] // stride, sides[1] // stride
        # A strided slice is slow, so cut out each phase of the stride once by a reshape.
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
