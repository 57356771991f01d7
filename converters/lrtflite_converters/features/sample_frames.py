"""Frames to try a network with: smooth waves, coloured or pale."""

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


def pale_frames(count: int, size: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return waves with the contrast of ordinary pictures, and colours that differ little.

    Features of these have about the size of features of pictures. Full contrast made those of a
    network without Batch Normalization twenty times as large.
    """
    waves = wave_frames(count, size, rng) - 127.5
    grey = waves.mean(axis=-1, keepdims=True)
    return (127.5 + 0.35 * grey + 0.15 * waves).astype(np.uint8)
