"""A session that is still being recorded, in a second thread."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.arguments import real_number
from lrtflite.errors import InputError
from lrtflite.frames.checks import check_frame
from lrtflite.labels import Label
from lrtflite.learner import Learner
from lrtflite.progress import Phase, Progress
from lrtflite.session.session import SessionReport

Frame = NDArray[np.uint8]
# Least seconds of a lesson, and least frames per second.
LEAST = 0.001


class Lesson:
    """Teach one class with frames that are handed over one by one; `predict` answers meanwhile.

    The lesson begins at once. `add` takes a frame, `finish` ends the recording and learns, and
    `cancel` leaves no trace. Once `is_over`, there is a `report`, or an `error` if the lesson
    failed or was cancelled. `frames` counts the frames taken, `extracted` those that are latents
    already, and `progress` is the newest progress of training, None before it begins.

    The class is a label, the number of a slot, or the background, as in `Learner.learn`.
    `on_latent` gets each latent, in the thread that extracts it. One thread at a time may hand over
    frames.
    """

    def __init__(
        self,
        learner: Learner,
        label: Label | None = None,
        *,
        slot: int | None = None,
        background: bool = False,
        seconds: float | None = None,
        fps: float | None = None,
        on_latent: Callable[[NDArray[Any]], None] | None = None,
    ) -> None:
        self.label, self.slot, self.background = label, slot, background
        self.seconds = _positive("seconds", seconds)
        self.frames = self.extracted = 0
        self.progress: Progress | None = None
        self.report: SessionReport | None = None
        self.error: Exception | None = None
        self._fps = _positive("fps", fps)
        self._learner, self._on_latent = learner, on_latent
        self._size = learner.bundle.manifest.input_size
        self._begun, self._finished = time.monotonic(), False
        self._cancel = threading.Event()
        self._frames: queue.SimpleQueue[Frame | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._learn, daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Return whether the lesson has learned, failed or been cancelled."""
        return not self._thread.is_alive()

    @property
    def is_cancelled(self) -> bool:
        """Return whether `cancel` was called; a lesson that was committed before has a report."""
        return self._cancel.is_set()

    @property
    def elapsed(self) -> float:
        """Return the seconds since the lesson began."""
        return time.monotonic() - self._begun

    def add(self, frame: Frame) -> None:
        """Take a frame (size, size, 3) uint8 RGB; raise InputError for another array.

        Raise InputError after `finish` or `cancel`, and once the lesson is over.
        """
        if self._finished or self.is_over:
            raise InputError(
                "Expected a lesson that is still recording, got one that has ended",
                "begin another lesson",
            )
        # The caller may reuse its buffer before the other thread reads the frame.
        self._frames.put(check_frame(frame, self._size).copy())
        self.frames += 1

    def offer(self, frame: Frame) -> bool:
        """Take a frame if it is due, `fps` of them per second; return whether it was taken.

        Once `seconds` are over, take no more and finish.
        """
        if self._finished or self.is_over:
            return False
        elapsed = self.elapsed
        if self.seconds is not None and elapsed >= self.seconds:
            self.finish()
            return False
        if self._fps is not None and elapsed < self.frames / self._fps:
            return False
        self.add(frame)
        return True

    def finish(self) -> None:
        """Learn from the frames so far; more calls change nothing."""
        self._finished = True
        self._frames.put(None)

    def cancel(self) -> None:
        """Learn nothing, unless the lesson is committed already."""
        self._cancel.set()
        self.finish()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until the lesson is over, or for so many seconds."""
        self._thread.join(seconds)

    def _learn(self) -> None:
        # A third thread extracts latents during recording.
        try:
            self.report = self._learner.learn(
                self._recorded(),
                self.label,
                slot=self.slot,
                background=self.background,
                on_progress=self._advance,
                cancel=self._cancel,
                on_latent=self._extracted,
            )
        except Exception as error:
            self.error = error

    def _recorded(self) -> Iterator[Frame]:
        while (frame := self._frames.get()) is not None:
            yield frame

    def _extracted(self, latent: NDArray[Any]) -> None:
        self.extracted += 1
        if self._on_latent is not None:
            self._on_latent(latent)

    def _advance(self, at: Progress) -> None:
        if at.phase != Phase.EXTRACT:
            self.progress = at


def _positive(name: str, value: float | None) -> float | None:
    return None if value is None else real_number(name, value, least=LEAST)
