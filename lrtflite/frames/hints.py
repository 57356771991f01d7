"""Judge the frames of a lesson while it is recorded: blurred, dark, the same again.

The judgements need the frames alone, and take a fraction of a millisecond each. The constants were
chosen on validation material (docs/studies/hints.md).
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lrtflite.frames.checks import check_frame

BLURRED, DARK, SAME = "blurred", "dark", "same"

# Distance in pixels over which an edge is compared with its steepest step.
REACH = 4
# Share of the differences between pixels that count as edges.
EDGES = 0.01
# Steepness below which a frame is blurred. A step of one pixel has 1, an even ramp 1 / REACH.
BLUR = 0.33
# Steepness along one axis below which a frame may be blurred by motion, and the share of the
# lesson's sharpest frames that it must stay under.
MOTION_BLUR, OF_SHARPEST = 0.36, 0.7
# Rank of the frame that stands for the sharpest ones.
SHARP_RANK = 3
# Contrast in grey levels below which a frame has no edges to judge.
MIN_CONTRAST = 12.0
# Level that 95 % of the pixels of a dark frame stay below, in their brightest channel.
DARK_LEVEL, DARK_SHARE = 64, 0.95
# Cells along each side of the thumbnail that is compared, and the contrast added to its own.
CELLS, FAINT = 8, 4.0
# Difference from any earlier frame, and mean difference from the last ones, that is too small. A
# thumbnail's own contrast is 1.
ALIKE, LITTLE_CHANGE = 0.02, 0.09
LAST = 8
# Maximum number of earlier frames that a frame is compared with.
MAX_EARLIER = 1000

Grey = NDArray[np.int16]


class FrameHints:
    """The frames of one lesson, in the order in which they arrive."""

    def __init__(self) -> None:
        self._size: int | None = None
        self._fresh = 0
        # Steepness of the sharpest frames along each axis, the sharpest first.
        self._sharpest: list[list[float]] = [[], []]
        self._thumbnails: deque[NDArray[np.float32]] = deque(maxlen=MAX_EARLIER)

    @property
    def fresh(self) -> int:
        """Return the number of frames so far that were not the same again."""
        return self._fresh

    def add(self, frame: ArrayLike) -> tuple[str, ...]:
        """Return what is wrong with a frame (H, H, 3) uint8: BLURRED, DARK, SAME; often nothing.

        Raise InputError for anything but a frame of the lesson's size.
        """
        size = self._size or next(iter(np.shape(frame)), 1)
        checked = check_frame(frame, size)
        self._size = size
        green = checked[..., 1].astype(np.int16)
        dark = is_dark(checked)
        hints = []
        # The edges of a dark frame are noise.
        if not dark and self._is_blurred(green):
            hints.append(BLURRED)
        if dark:
            hints.append(DARK)
        if self._is_same(green):
            hints.append(SAME)
        else:
            self._fresh += 1
        return tuple(hints)

    def _is_blurred(self, green: Grey) -> bool:
        axes = edges(green)
        contrasts = [contrast for _, contrast in axes]
        if max(contrasts, default=0.0) < MIN_CONTRAST:
            return False
        steepness = [step / contrast if contrast else 1.0 for step, contrast in axes]
        blurred = sum(step for step, _ in axes) < BLUR * sum(contrasts)
        for value, sharpest in zip(steepness, self._sharpest):
            sharpest.append(value)
            sharpest.sort(reverse=True)
            del sharpest[SHARP_RANK:]
            known = len(sharpest) == SHARP_RANK
            blurred |= known and value < min(MOTION_BLUR, OF_SHARPEST * sharpest[-1])
        return blurred

    def _is_same(self, green: Grey) -> bool:
        new = thumbnail(green)
        earlier = self._thumbnails
        same = False
        if earlier:
            changes = np.sqrt(np.square(np.stack(earlier) - new).mean(axis=1))
            same = bool(changes.min() < ALIKE)
            if len(changes) >= LAST:
                same |= bool(changes[-LAST:].mean() < LITTLE_CHANGE)
        earlier.append(new)
        return same


def is_dark(frame: NDArray[np.uint8]) -> bool:
    """Return whether almost all pixels of a frame (H, H, 3) are dark; every fourth is looked at."""
    brightest = frame[::4, ::4].max(axis=2)
    return bool((brightest < DARK_LEVEL).mean() >= DARK_SHARE)


def is_blurred(frame: NDArray[np.uint8]) -> bool:
    """Return whether the edges of a frame (H, H, 3) are all soft, judged without other frames."""
    axes = edges(frame[..., 1].astype(np.int16))
    contrasts = [contrast for _, contrast in axes]
    if is_dark(frame) or max(contrasts, default=0.0) < MIN_CONTRAST:
        return False
    return sum(step for step, _ in axes) < BLUR * sum(contrasts)


def edges(grey: Grey) -> list[tuple[float, float]]:
    """Return, for each axis, the steps of the strongest edges, and their contrast over REACH.

    Their ratio does not depend on the contrast, and a smooth thing in focus still has a sharp
    outline. Every second line is looked at. Empty for a frame that is too small.
    """
    if len(grey) <= REACH:
        return []
    found = []
    for lines in (grey[::2], grey[:, ::2].T):
        step = np.abs(lines[:, 1:] - lines[:, :-1])
        contrast = np.abs(lines[:, REACH:] - lines[:, :-REACH])
        found.append((_mean_of_largest(step), _mean_of_largest(contrast)))
    return found


def thumbnail(grey: Grey) -> NDArray[np.float32]:
    """Return the means of CELLS x CELLS parts, flat, without their mean and their contrast."""
    cells = min(CELLS, len(grey))
    side = len(grey) // cells
    whole = grey[: cells * side, : cells * side].astype(np.float32)
    parts = whole.reshape(cells, side, cells, side).mean(axis=(1, 3)).reshape(-1)
    centred = parts - parts.mean()
    return np.asarray(centred / (centred.std() + FAINT), np.float32)


def _mean_of_largest(values: NDArray[np.int16]) -> float:
    """Return the mean of the share EDGES of values from 0 to 255 that are the largest."""
    count = max(1, int(EDGES * values.size))
    levels = np.bincount(values.ravel(), minlength=256)[::-1]
    above = np.minimum(np.cumsum(levels), count)
    taken = np.diff(above, prepend=0)
    return float((taken * np.arange(255, -1, -1)).sum() / count)
