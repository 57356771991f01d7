"""Variations of training frames that keep their class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LARGEST_SHIFT = 0.125  # of the side
LIGHT_RANGE = (0.7, 1.3)


def augment(frames: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.uint8]:
    """Mirror half of the `(N, S, S, 3)` frames, shift each, and make each brighter or darker.

    Rows and columns that a shift uncovers repeat the border.
    """
    count, size = frames.shape[:2]
    reach = int(LARGEST_SHIFT * size)
    down, right = rng.integers(-reach, reach + 1, (2, count, 1))
    rows = np.clip(np.arange(size) + down, 0, size - 1)
    columns = np.clip(np.arange(size) + right, 0, size - 1)
    mirrored = rng.random(count) < 0.5
    columns[mirrored] = columns[mirrored, ::-1]
    frame = np.arange(count)[:, None, None]
    moved = frames[frame, rows[:, :, None], columns[:, None, :]]
    light = rng.uniform(*LIGHT_RANGE, count).astype(np.float32)
    scaled = moved * light[:, None, None, None]
    return np.clip(np.rint(scaled), 0, 255).astype(np.uint8)
