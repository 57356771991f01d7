"""Read the frames that quantisation is calibrated on; needs no TensorFlow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrtflite.data import FrameSource, open_source, whole_batch
from lrtflite.errors import DataError
from lrtflite.evenly import evenly
from lrtflite_converters.quantise.options import QuantiseOptions


@dataclass(frozen=True)
class Calibration:
    """Frames (n, S, S, 3) uint8 of a data set's training part, and their labels (n,)."""

    name: str
    frames: NDArray[np.uint8]
    labels: NDArray[np.int64]

    @property
    def size(self) -> int:
        return int(self.frames.shape[1])


def read_calibration(options: QuantiseOptions, *, size: int) -> Calibration:
    """Open the data set of the options and read its frames; see `calibration_of`."""
    assert options.calibrate is not None
    source = open_source(options.calibrate, size=size, skip_unreadable=options.skip_unreadable)
    return calibration_of(source, options.frame_count)


def calibration_of(source: FrameSource, count: int) -> Calibration:
    """Read `count` frames of all classes, or raise DataError if there are none to calibrate on.

    Only training frames are read, so that a test on the same data set stays valid.
    """
    frames, labels = _read(source, count)
    check_frames(frames, source.name, source.size)
    return Calibration(source.name, np.stack(frames), np.array(labels))


def _read(source: FrameSource, count: int) -> tuple[list[NDArray[np.uint8]], list[int]]:
    """Return `count` frames at most, the same number of each class, and their labels."""
    per_class = max(1, count // max(len(source.classes), 1))
    batch = whole_batch(source, per_class)
    chosen = set(evenly(len(batch), count))
    frames = [frame for place, frame in enumerate(batch.frames()) if place in chosen]
    return frames, [label for place, label in enumerate(batch.labels) if place in chosen]


def check_frames(frames: list[NDArray[np.uint8]], name: str, size: int) -> None:
    """Raise DataError for no frames, frames of another size, or frames without any content."""
    if not frames:
        raise DataError(
            f"Expected frames to calibrate on in {name}, got none",
            "add pictures, or give another --calibrate",
        )
    for frame in frames:
        if frame.shape != (size, size, 3) or frame.dtype != np.uint8:
            raise DataError(
                f"Expected frames of {size} x {size} RGB in {name}, got {frame.shape} of "
                f"{frame.dtype}",
                "resize them, or give another --calibrate",
            )
    if all(frame.min() == frame.max() for frame in frames):
        raise DataError(
            f"Expected pictures to calibrate on in {name}, got {len(frames)} frames of one colour "
            "each",
            "give pictures like those of the device's camera",
        )
