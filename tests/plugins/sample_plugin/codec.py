"""One byte for each value of a latent."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.replay.codecs import LatentForm
from lrtflite.replay.policies import Indices


class Bytes:
    """Round each value to one of 256 steps of the latent's range."""

    def __init__(self, form: LatentForm) -> None:
        self.shape, self.dtype = form.shape, np.dtype(np.uint8)
        self.low, high = form.range
        self.step = (high - self.low) / 255

    def encode(self, latent: NDArray[Any]) -> NDArray[Any]:
        return np.clip(np.rint((latent - self.low) / self.step), 0, 255).astype(np.uint8)

    def decode(self, codes: NDArray[Any], rows: Indices, out: NDArray[Any]) -> None:
        out[:] = codes[rows] * self.step + self.low
