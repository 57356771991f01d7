"""The scaling of frames, as the quantisation of a uint8 input can express it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

import numpy as np
from numpy.typing import NDArray

from lrtflite.errors import ModelError

# Largest deviation from a straight line, in steps of a frame.
TOLERANCE = 1e-3


@dataclass(frozen=True)
class FrameScaling:
    """Value of a frame's byte: `step` times its distance from `zero`, a whole number.

    From -1 to 1, the byte that stands for 0 is 127.5. A zero point is a whole number, so inputs are
    off by half a step. Bias correction takes that into account.
    """

    step: float
    zero: int

    @classmethod
    def of(cls, scale: Callable[[Any], Any]) -> FrameScaling:
        """Return the scaling that is nearest to a network's own; raise ModelError if none is."""
        ramp = np.repeat(np.arange(256, dtype=np.uint8), 3).reshape(1, 1, 256, 3)
        values = np.asarray(scale(ramp), np.float64)[0, 0]
        step = float(values[255, 0] - values[0, 0]) / 255
        line = values[0, 0] + step * np.arange(256)[:, np.newaxis]
        zero = -float(values[0, 0]) / step if step > 0 else -1.0
        if not step > 0 or np.abs(values - line).max() > TOLERANCE * step or not 0 <= zero <= 255:
            raise ModelError(
                "Expected a network that scales all colours of a frame by one factor and offset, "
                f"with 0 among the results, got {values[0].tolist()} for black and "
                f"{values[255].tolist()} for white",
                "leave --quantize out",
            )
        return cls(step, int(np.floor(zero + 0.5)))

    def __call__(self, frames: NDArray[np.uint8]) -> NDArray[np.float32]:
        return (frames.astype(np.float32) - np.float32(self.zero)) * np.float32(self.step)
