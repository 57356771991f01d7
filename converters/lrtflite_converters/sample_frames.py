"""Frames to try a network with: smooth coloured waves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def wave_frames(count: int, size: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return (count, size, size, 3) uint8: smooth coloured waves, which excite every layer."""
    grid = np.linspace(0, 2 * np.pi, size)
    waves = rng.uniform(0.5, 6, (count, 3, 2))
    phases = rng.uniform(0, 2 * np.pi, (count, 3, 1, 1))
    angle = waves[..., :1, None] * grid[:, None] + waves[..., 1:, None] * grid + phases
    return (127.5 + 127.5 * np.sin(angle)).astype(np.uint8).transpose(0, 2, 3, 1)
