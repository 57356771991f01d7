"""Camera frames as the model wants them: square, of one size, uint8 RGB.

`fit_frame` is all integer arithmetic, so that a client in another language gets the same bytes.
With a frame of H x W pixels and an output side of m:

1. Crop the centred square of side n = min(H, W), from row (H - n) // 2 and column (W - n) // 2.
2. Each axis has whole weights w[o][i] (output o, input i) that sum to D for every o:

   - shrinking (n > m), the average over the area: D = n, and w[o][i] is the overlap of
     [o * n, (o + 1) * n) with [i * m, (i + 1) * m);
   - enlarging (n < m), linear between pixel centres: D = 2 * m, t = (2 * o + 1) * n - m,
     i = floor(t / D), f = t - i * D; pixel i has weight D - f and pixel i + 1 weight f, an index
     outside 0 .. n - 1 meaning the nearest pixel inside;
   - n == m: the pixels stay as they are.

3. S = sum over rows r and columns c of w[y][r] * w[x][c] * pixel[r][c], per channel, and
   output[y][x] = floor((2 * S + D * D) / (2 * D * D)): rounded once, halves up.

S needs 64 bits. Summing rows first and columns second gives the same S.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from os import PathLike

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lrtflite.arguments import whole_number
from lrtflite.errors import InputError


def fit_frame(image: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """Crop the centred square and resize it: (H, W, 3) uint8 -> (size, size, 3) uint8.

    The module's docstring has the exact rule. Area average when shrinking, linear interpolation
    with half-pixel centres when enlarging.
    """
    size = whole_number("size", size, least=1)
    check_no_path(image)
    image = np.asarray(image)
    if image.ndim != 3 or image.shape[2] != 3 or 0 in image.shape or image.dtype != np.uint8:
        raise InputError(
            f"Expected an image of shape (H, W, 3) uint8 RGB, got {image.shape} {image.dtype}"
        )
    side = min(image.shape[:2])
    top, left = (image.shape[0] - side) // 2, (image.shape[1] - side) // 2
    square = image[top : top + side, left : left + side]
    if side == size:
        return square.copy()  # a camera may reuse its buffer for the next frame

    weights, total, spans = _axis_weights(side, size)
    # Every product and sum is a whole number below 2**53, so float64 holds it exactly and the BLAS
    # may add in any order. Rows go one output at a time: a photograph is never copied as float64.
    rows = np.empty((size, side * 3))
    for y, (start, stop) in enumerate(spans):
        block = square[start:stop].reshape(stop - start, side * 3)
        rows[y] = weights[y, start:stop] @ block.astype(np.float64)
    by_channel = rows.reshape(size, side, 3).transpose(0, 2, 1).reshape(size * 3, side)
    sums = by_channel @ weights.T
    area = float(total) ** 2
    fitted = np.floor((2 * sums + area) / (2 * area)).astype(np.uint8)
    return np.ascontiguousarray(fitted.reshape(size, 3, size).transpose(0, 2, 1))


def check_no_path(frames: object) -> None:
    """Raise InputError for the path of a picture in place of its pixels."""
    if isinstance(frames, (str, bytes, PathLike)):
        raise InputError(
            f"Expected frames as arrays (H, W, 3) uint8 RGB, got the path or text {frames!r}; read "
            "the picture first, with lrtflite.read_image(path, size)"
        )


def check_frames(frames: ArrayLike | Sequence[NDArray[np.uint8]], size: int) -> NDArray[np.uint8]:
    """One frame (size, size, 3) or a stack of them -> (n, size, size, 3) uint8; else InputError.

    Not copied where it need not be.
    """
    check_no_path(frames)
    try:
        stack = np.asarray(frames)
    except ValueError:
        raise InputError(
            f"Expected frames of one shape, {(size, size, 3)}, got several; use fit_frame on each"
        ) from None
    wanted = f"(n, {size}, {size}, 3) uint8 RGB"
    if stack.size == 0:
        raise InputError(f"Expected frames of shape {wanted}, got none (shape {stack.shape})")
    if stack.dtype != np.uint8:
        advice = "convert them with .astype('uint8') once they run from 0 to 255"
        kind = str(stack.dtype)
        if stack.dtype.kind == "f" and not np.isfinite(stack).all():
            kind += " with NaN or infinity"
        raise InputError(f"Expected frames of {wanted}, got {kind}; {advice}")
    if stack.ndim == 3:
        stack = stack[np.newaxis]
    if stack.ndim != 4 or stack.shape[1:] != (size, size, 3):
        raise InputError(
            f"Expected frames of shape {wanted}, got {np.shape(frames)}; "
            f"use lrtflite.frames.fit_frame(image, {size})"
        )
    return np.ascontiguousarray(stack)


@lru_cache(maxsize=16)
def _axis_weights(
    side: int, size: int
) -> tuple[NDArray[np.float64], int, tuple[tuple[int, int], ...]]:
    """Whole weights (size, side) float64, their sum per row, and where each row is not zero."""
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


def check_frame(frame: ArrayLike, size: int) -> NDArray[np.uint8]:
    """One frame (size, size, 3) uint8; a stack of several is refused."""
    check_no_path(frame)
    try:
        shape = np.shape(frame)
    except ValueError:
        raise InputError("Expected a frame (H, W, 3) as one array, got rows that differ") from None
    if len(shape) != 3:
        raise InputError(f"Expected one frame (H, W, 3) at a time, got {shape}")
    checked: NDArray[np.uint8] = check_frames(frame, size)[0]
    return checked
