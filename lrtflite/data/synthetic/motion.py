"""Hand-held motion: a sum of slow sinusoids per degree of freedom.

A pose is a function of time alone, so any frame can be drawn without the frames before it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Pose(NamedTuple):
    """Position of object, hand and camera in one frame; frame widths and radians."""

    x: float
    y: float
    roll: float
    size: float
    turn: float
    tilt: float
    grip: float
    pan_x: float
    pan_y: float
    gain: float
    focus: float


# Amplitude and lowest frequency in Hz of each degree of freedom.
_SWING = np.array(
    [
        [0.08, 0.10],  # x
        [0.07, 0.10],  # y
        [0.45, 0.06],  # roll
        [0.14, 0.06],  # size (log)
        [0.70, 0.08],  # turn
        [0.35, 0.07],  # tilt
        [0.12, 0.05],  # grip
        [0.14, 0.05],  # pan x
        [0.10, 0.05],  # pan y
        [0.12, 0.05],  # gain (log)
        [0.50, 0.10],  # focus
    ]
)
# Frequency of each wave, relative to the lowest frequency, and its share of the amplitude.
_WAVES = np.array([[1.0, 2.3, 5.1]])
_SHARES = np.array([[0.75, 0.35, 0.08]])


class Motion(NamedTuple):
    """A video's trajectory, as a function of time."""

    frequency: NDArray[np.float64]
    phase: NDArray[np.float64]
    amplitude: NDArray[np.float64]
    centre: NDArray[np.float64]
    spin: float

    def at(self, seconds: float) -> Pose:
        """Return the pose at a time, in seconds from the start of the video."""
        waves = np.sin(2 * np.pi * (self.frequency * seconds + self.phase))
        values = self.centre + (self.amplitude * waves).sum(1)
        values[3] = np.exp(values[3])
        values[4] += self.spin * seconds
        return Pose(*values.tolist())


def draw_motion(rng: np.random.Generator, *, shake: float) -> Motion:
    """Draw the motion of one video; `shake` scales the fastest waves."""
    shape = (len(_SWING), 3)
    amplitude = _SWING[:, :1] * _SHARES * rng.uniform(0.6, 1.2, shape)
    amplitude[:, 2] *= shake
    centre = np.zeros(len(_SWING))
    centre[:2] = rng.normal((0.0, -0.05), 0.04)
    centre[2] = rng.normal(0, 0.25)
    centre[3] = np.log(rng.uniform(0.33, 0.42))
    centre[4] = rng.uniform(-0.5, 0.5)
    centre[6] = rng.uniform(0.3, 0.6)
    return Motion(
        frequency=_SWING[:, 1:] * _WAVES * rng.uniform(0.7, 1.3, shape),
        phase=rng.random(shape),
        amplitude=amplitude,
        centre=centre,
        spin=float(rng.uniform(-0.35, 0.35)),
    )
