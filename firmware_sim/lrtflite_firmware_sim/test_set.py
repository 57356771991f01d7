"""The held-out test set: extracted once by the device, judged after every session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lrtflite.data import Frame, FrameSource
from lrtflite.errors import DataError
from lrtflite_firmware_sim.device_process import DeviceProcess

_CHUNK = 50  # latents per request: the device's RAM must not notice the test
_SAMPLES = 32


@dataclass(frozen=True)
class TestSet:
    """`truth` (N,) int64 indexes the source's classes, `latents` is (N, ...) float32.

    `samples` are some of its frames, evenly spread, for timing predictions.
    """

    __test__ = False  # pytest: this is no test

    classes: tuple[str, ...]
    truth: NDArray[np.int64]
    latents: NDArray[np.float32] = field(repr=False)
    samples: tuple[Frame, ...] = field(repr=False)

    @classmethod
    def extract(
        cls,
        source: FrameSource,
        device: DeviceProcess,
        *,
        on_frame: Callable[[int, int], None] | None = None,
    ) -> TestSet:
        """Have the device extract every test frame. `on_frame` gets (done, total)."""
        clips = source.test_clips()
        truth = np.repeat([clip.label for clip in clips], [clip.length for clip in clips])
        total = len(truth)
        for label in sorted(set(range(len(source.classes))).difference(truth.tolist())):
            raise DataError(
                f"Expected test frames of every class in {source.name}, "
                f"got none of {source.classes[label]!r}; add some or remove the class"
            )
        latents: list[NDArray[np.float32]] = []
        samples: list[Frame] = []
        every = -(-total // _SAMPLES)
        for frame in (frame for clip in clips for frame in clip.read()):
            if len(latents) % every == 0:
                samples.append(frame)
            latents.append(device.extract(frame))
            if on_frame is not None:
                on_frame(len(latents), total)
        return cls(source.classes, truth.astype(np.int64), np.concatenate(latents), tuple(samples))

    def predicted(self, device: DeviceProcess, labels: Sequence[str | None]) -> NDArray[np.int64]:
        """The class (N,) int64 that the device takes each pattern for.

        `labels` are the device's, by slot. Whatever is no class of the data set (or no answer at
        all, while nothing is learned) counts as one more class, `len(classes)`.
        """
        number = {name: index for index, name in enumerate(self.classes)}
        other = len(self.classes)
        class_of_slot = np.array([number.get(label or "", other) for label in labels], np.int64)
        guesses = []
        for start in range(0, len(self.latents), _CHUNK):
            rows = device.probabilities(self.latents[start : start + _CHUNK])
            found = class_of_slot[rows.argmax(axis=1)]
            guesses.append(np.where(rows.max(axis=1) > 0, found, other))
        return np.concatenate(guesses)
