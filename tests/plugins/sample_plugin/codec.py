"""One byte for each value of a latent."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.replay.codecs import LatentForm
from lrtflite.replay.policies import Indices


class Bytes:
    """Round each value to one of 256 steps between the latent's own smallest and largest value."""

    # The layer's range would waste steps: without an upper limit, it is far wider than any latent.
    # Each code begins with its smallest value and its step, four bytes each.
    def __init__(self, form: LatentForm) -> None:
        self.shape: tuple[int, ...] = (8 + math.prod(form.shape),)
        self.dtype = np.dtype(np.uint8)

    def encode(self, latent: NDArray[Any]) -> NDArray[Any]:
        low, high = float(latent.min()), float(latent.max())
        step = (high - low) / 255 or 1.0
        values = np.clip(np.rint((latent.ravel() - low) / step), 0, 255)
        scale = np.array([low, step], np.float32).view(np.uint8)
        return np.concatenate([scale, values.astype(np.uint8)])

    def decode(self, codes: NDArray[Any], rows: Indices, out: NDArray[Any]) -> None:
        chosen = codes[rows]
        low, step = np.ascontiguousarray(chosen[:, :8]).view(np.float32).T[..., None]
        out[:] = (chosen[:, 8:] * step + low).reshape(out.shape)
