"""A frame source for tests: each class is a colour under noise, drawn from its seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from lrtflite.data import Clip

COLOURS = {"red": (200, 40, 40), "green": (40, 200, 40), "blue": (40, 40, 200), "grey": (99,) * 3}


class ColouredSource:
    """`clips` training clips and one test clip of `frames` frames for each of four classes."""

    name = "coloured"
    classes = tuple(COLOURS)

    def __init__(self, *, size: int = 32, clips: int = 2, frames: int = 6, noise: int = 60) -> None:
        self.size = size
        self._clips, self._frames, self._noise = clips, frames, noise

    def train_clips(self) -> Sequence[Clip]:
        return [self._clip(c, k) for c in range(len(COLOURS)) for k in range(self._clips)]

    def test_clips(self) -> Sequence[Clip]:
        return [self._clip(c, 99) for c in range(len(COLOURS))]

    def _clip(self, label: int, number: int) -> Clip:
        def read(indices: Sequence[int]) -> Iterator[NDArray[np.uint8]]:
            for index in indices:
                rng = np.random.default_rng([label, number, index])
                noise = rng.integers(-self._noise, self._noise + 1, (self.size, self.size, 3))
                colour = np.array(COLOURS[self.classes[label]])
                yield np.clip(colour + noise, 0, 255).astype(np.uint8)

        return Clip(label, f"{self.classes[label]}/{number}", self._frames, read)
