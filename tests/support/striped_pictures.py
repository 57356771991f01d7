"""Two kinds of pictures that a learner tells apart."""

from __future__ import annotations

import numpy as np


def picture(kind: int, seed: int) -> np.ndarray:
    """Return (96, 128, 3) uint8: broad red stripes (0) or fine blue checks (1), with noise."""
    rows, columns = np.indices((96, 128))
    shape = (columns // 24 % 2) if kind == 0 else (rows // 6 + columns // 6) % 2
    light, dark = (((230, 60, 40), (90, 10, 10)), ((40, 90, 230), (230, 230, 120)))[kind]
    plain = np.where(shape[..., np.newaxis], light, dark)
    noise = np.random.default_rng(seed).normal(0, 12, (96, 128, 3))
    return np.clip(plain + noise, 0, 255).astype(np.uint8)
