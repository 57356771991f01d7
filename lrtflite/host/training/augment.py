"""Random variations of training frames that do not change their class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Largest shift, as a share of the frame's side.
LARGEST_SHIFT_SHARE = 0.125
# Lowest and highest factor of the pixel values.
BRIGHTNESS_FACTORS = (0.7, 1.3)


def augment(frames: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return the `(N, S, S, 3)` frames, half of them mirrored, all shifted and brighter or darker.

    Rows and columns that a shift leaves empty repeat the border.
    """
    count, size = frames.shape[:2]
    reach = int(LARGEST_SHIFT_SHARE * size)
    down, right = rng.integers(-reach, reach + 1, (2, count, 1))
    rows = np.clip(np.arange(size) + down, 0, size - 1)
    columns = np.clip(np.arange(size) + right, 0, size - 1)
    mirrored = rng.random(count) < 0.5
    columns[mirrored] = columns[mirrored, ::-1]
    frame = np.arange(count)[:, None, None]
    moved = frames[frame, rows[:, :, None], columns[:, None, :]]
    brightness = rng.uniform(*BRIGHTNESS_FACTORS, count).astype(np.float32)
    scaled = moved * brightness[:, None, None, None]
    return np.clip(np.rint(scaled), 0, 255).astype(np.uint8)
