"""Turn pictures into the frames that a model expects: square, of one size, uint8 RGB.

`fit_frame` uses integer arithmetic only, so that a client in another language gets the same bytes.
With a picture of H x W pixels and an output side of m:

1. Crop the centred square of side n = min(H, W), from row (H - n) // 2 and column (W - n) // 2.
2. Each axis has whole weights w[o][i] (output o, input i) that sum to D for every o:

   - shrinking (n > m), the average over the area: D = n, and w[o][i] is the overlap of
     [o * n, (o + 1) * n) with [i * m, (i + 1) * m);
   - enlarging (n < m), linear between pixel centres: D = 2 * m, t = (2 * o + 1) * n - m,
     i = floor(t / D), f = t - i * D; pixel i has weight D - f and pixel i + 1 weight f, where an
     index outside 0 .. n - 1 stands for the nearest pixel inside;
   - same size (n == m): the pixels are unchanged.

3. S = sum over rows r and columns c of w[y][r] * w[x][c] * pixel[r][c], per channel, and
   output[y][x] = floor((2 * S + D * D) / (2 * D * D)): rounded once, halves up.

S needs 64 bits. Summing rows first and columns second gives the same S.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lrtflite.arguments import whole_number
from lrtflite.errors import InputError
from lrtflite.frames.checks import check_no_path


def fit_frame(image: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """Crop the centred square and resize it: (H, W, 3) uint8 -> (size, size, 3) uint8.

    Shrinking averages over the area; enlarging interpolates linearly with half-pixel centres. The
    module's docstring has the exact rule.
    """
    size = whole_number("size", size, least=1)
    check_no_path(image)
    image = np.asarray(image)
    if image.ndim != 3 or image.shape[2] != 3 or 0 in image.shape or image.dtype != np.uint8:
        raise InputError(
            f"Expected an image of shape (H, W, 3) uint8 RGB, got {image.shape} {image.dtype}",
            "convert it, or read the file with lrtflite.read_image",
        )
    side = min(image.shape[:2])
    top, left = (image.shape[0] - side) // 2, (image.shape[1] - side) // 2
    square = image[top : top + side, left : left + side]
    if side == size:
        return square.copy()  # a camera may reuse its buffer for the next frame

    weights, total, spans = axis_weights(side, size)
    # Every product and sum is a whole number below 2**53, so float64 holds it exactly and the BLAS
    # may add in any order. One output row at a time, so a photograph is never copied as float64.
    rows = np.empty((size, side * 3))
    for y, (start, stop) in enumerate(spans):
        block = square[start:stop].reshape(stop - start, side * 3)
        rows[y] = weights[y, start:stop] @ block.astype(np.float64)
    by_channel = rows.reshape(size, side, 3).transpose(0, 2, 1).reshape(size * 3, side)
    sums = by_channel @ weights.T
    area = float(total) ** 2
    fitted = np.floor((2 * sums + area) / (2 * area)).astype(np.uint8)
    return np.ascontiguousarray(fitted.reshape(size, 3, size).transpose(0, 2, 1))


@lru_cache(maxsize=16)
def axis_weights(
    side: int, size: int
) -> tuple[NDArray[np.float64], int, tuple[tuple[int, int], ...]]:
    """Return whole weights (size, side) float64, their sum per row, each row's nonzero span."""
    outputs = np.arange(size)[:, np.newaxis]
    if side > size:
        inputs = np.arange(side)[np.newaxis]
        end = np.minimum((outputs + 1) * side, (inputs + 1) * size)
        begin = np.maximum(outputs * side, inputs * size)
        whole, total = np.maximum(end - begin, 0), side
    else:
        total = 2 * size
        t = (2 * outputs[:, 0] + 1) * side - size
        low = t // total
        part = t - low * total
        whole = np.zeros((size, side), np.int64)
        rows = np.arange(size)
        np.add.at(whole, (rows, np.clip(low, 0, side - 1)), total - part)
        np.add.at(whole, (rows, np.clip(low + 1, 0, side - 1)), part)
    spans = []
    for row in whole:
        used = np.flatnonzero(row)
        spans.append((int(used[0]), int(used[-1]) + 1))
    return whole.astype(np.float64), total, tuple(spans)
