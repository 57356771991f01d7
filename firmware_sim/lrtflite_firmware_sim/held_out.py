"""The held-out test set, which the device classifies after every session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.answers.prediction import Answers
from lrtflite.bundle.manifest import Manifest
from lrtflite.data import Clip, Frame, FrameSource
from lrtflite.errors import DataError
from lrtflite.evenly import evenly
from lrtflite.progress import OnProgress, Phase, Progress
from lrtflite_firmware_sim.device.process import DeviceProcess
from lrtflite_firmware_sim.stored_latents import StoredLatents

# Maximum size of the test set kept in RAM, in bytes.
LIMIT = 512 << 20
# Maximum bytes of latents per request; small enough not to raise the device's peak RAM.
MESSAGE = 50 << 12
# Frames for timing predictions.
_SAMPLES = 32


@dataclass(frozen=True)
class Tested:
    """The predicted class (N,) int64 of each test frame, and its familiarity if it is reported."""

    guess: NDArray[np.int64]
    familiarity: NDArray[np.float64] | None


@dataclass(frozen=True)
class HeldOut:
    """Test frames with their classes; `truth` (N,) int64 indexes the source's classes.

    `latents` are kept if they fit into RAM and the device does not change its features. Otherwise
    `frames` are kept if they fit, and the device extracts them again in every evaluation. If
    neither fits, `clips` are read again. `samples` are some of the frames, evenly spread, for
    timing predictions.
    """

    classes: tuple[str, ...]
    truth: NDArray[np.int64]
    samples: tuple[Frame, ...] = field(repr=False)
    clips: Sequence[Clip] = field(repr=False)
    latents: tuple[NDArray[Any], ...] = field(repr=False, default=())  # (1, ...) each
    frames: tuple[Frame, ...] = field(repr=False, default=())

    @classmethod
    def read(
        cls,
        source: FrameSource,
        device: DeviceProcess,
        manifest: Manifest,
        *,
        stored: StoredLatents | None = None,
        on_progress: OnProgress | None = None,
    ) -> HeldOut:
        """Read every test frame once; the device extracts them if latents are kept.

        If they are `stored`, read only the samples.
        """
        clips = source.test_clips()
        truth = np.repeat([clip.label for clip in clips], [clip.length for clip in clips])
        total = len(truth)
        for label in sorted(set(range(len(source.classes))).difference(truth.tolist())):
            raise DataError(
                f"Expected test frames of every class in {source.name}, "
                f"got none of {source.classes[label]!r}",
                "add some or remove the class",
            )
        sampled = evenly(total, _SAMPLES)
        if stored is not None:
            return cls(
                source.classes,
                truth.astype(np.int64),
                tuple(_read_some(clips, sampled)),
                clips,
                stored.of_test(clips),
            )
        keep_latents = total * manifest.latent_bytes <= LIMIT and not manifest.adapt_moments
        keep_frames = not keep_latents and total * 3 * manifest.input_size**2 <= LIMIT
        latents: list[NDArray[Any]] = []
        frames: list[Frame] = []
        samples: list[Frame] = []
        chosen = frozenset(sampled)
        for number, frame in enumerate(_read(clips)):
            if number in chosen:
                samples.append(frame)
            if keep_latents:
                latents.append(device.extract(frame))
            elif keep_frames:
                frames.append(frame)
            if on_progress is not None:
                on_progress(Progress(Phase.READ, number + 1, total))
        return cls(
            source.classes,
            truth.astype(np.int64),
            tuple(samples),
            clips,
            tuple(latents),
            tuple(frames),
        )

    @property
    def is_extracted(self) -> bool:
        """Return whether latents are kept, so that the device extracts no test frame again."""
        return bool(self.latents)

    def predicted(
        self,
        device: DeviceProcess,
        labels: Sequence[str | None],
        *,
        on_progress: OnProgress | None = None,
    ) -> Tested:
        """Let the device answer every test frame.

        `labels` has the device's label of each slot. If the answer is not in the data set, or
        nothing is learned yet, the prediction is an extra class, `len(classes)`.
        """
        number = {name: index for index, name in enumerate(self.classes)}
        other = len(self.classes)
        class_of_slot = np.array([number.get(label or "", other) for label in labels], np.int64)
        guesses: list[int] = []
        familiarity: list[float] = []
        for answers in self._answers(device):
            rows = answers.probabilities
            found = class_of_slot[rows.argmax(axis=1)]
            guesses += np.where(rows.max(axis=1) > 0, found, other).tolist()
            if answers.familiarity is not None:
                familiarity += answers.familiarity.tolist()
            if on_progress is not None:
                on_progress(Progress(Phase.TEST, len(guesses), len(self.truth)))
        return Tested(np.array(guesses, np.int64), np.array(familiarity) if familiarity else None)

    def _answers(self, device: DeviceProcess) -> Iterator[Answers]:
        """Yield the answers to a few test frames at a time."""
        if self.is_extracted:
            at_once = max(1, MESSAGE // self.latents[0].nbytes)
            for start in range(0, len(self.latents), at_once):
                yield device.answers(np.concatenate(self.latents[start : start + at_once]))
        else:
            for frame in self.frames or _read(self.clips):
                yield device.recognise(frame)


def _read_some(clips: Sequence[Clip], numbers: Sequence[int]) -> Iterator[Frame]:
    """Yield the frames with these ascending numbers, counted over all clips."""
    start = 0
    for clip in clips:
        yield from clip.read([n - start for n in numbers if start <= n < start + clip.length])
        start += clip.length


def _read(clips: Sequence[Clip]) -> Iterator[Frame]:
    return (frame for clip in clips for frame in clip.read())
