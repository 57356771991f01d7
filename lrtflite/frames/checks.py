"""Check the frames that a client hands over."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lrtflite.errors import InputError


def check_no_path(frames: object) -> None:
    """Raise InputError if `frames` is the path of a picture instead of its pixels."""
    if isinstance(frames, (str, bytes, PathLike)):
        raise InputError(
            f"Expected frames as arrays (H, W, 3) uint8 RGB, got the path or text {frames!r}",
            "read the picture first, with lrtflite.read_image(path, size)",
        )


def check_frames(frames: ArrayLike | Sequence[NDArray[np.uint8]], size: int) -> NDArray[np.uint8]:
    """Return one frame (size, size, 3) or a stack of them as (n, size, size, 3) uint8.

    Raise InputError for anything else. Copy only if necessary.
    """
    check_no_path(frames)
    try:
        stack = np.asarray(frames)
    except ValueError:
        raise InputError(
            f"Expected frames of one shape, {(size, size, 3)}, got several", "use fit_frame on each"
        ) from None
    wanted = f"(n, {size}, {size}, 3) uint8 RGB"
    if stack.size == 0:
        raise InputError(
            f"Expected frames of shape {wanted}, got none (shape {stack.shape})",
            "give at least one",
        )
    if stack.dtype != np.uint8:
        advice = "convert them with .astype('uint8') once they run from 0 to 255"
        kind = str(stack.dtype)
        if stack.dtype.kind == "f" and not np.isfinite(stack).all():
            kind += " with NaN or infinity"
        raise InputError(f"Expected frames of {wanted}, got {kind}", advice)
    if stack.ndim == 3:
        stack = stack[np.newaxis]
    if stack.ndim != 4 or stack.shape[1:] != (size, size, 3):
        raise InputError(
            f"Expected frames of shape {wanted}, got {np.shape(frames)}",
            f"use lrtflite.fit_frame(image, {size})",
        )
    return np.ascontiguousarray(stack)


def check_frame(frame: ArrayLike, size: int) -> NDArray[np.uint8]:
    """Return one frame (size, size, 3) uint8; raise InputError for a stack of several."""
    check_no_path(frame)
    try:
        shape = np.shape(frame)
    except ValueError:
        raise InputError(
            "Expected a frame (H, W, 3) as one array, got rows that differ", "give a numpy array"
        ) from None
    if len(shape) != 3:
        raise InputError(
            f"Expected one frame (H, W, 3) at a time, got {shape}", "give frames one by one"
        )
    checked: NDArray[np.uint8] = check_frames(frame, size)[0]
    return checked
