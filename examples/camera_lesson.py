"""A session of camera_loop.py, in a second thread, so that answers go on while it records."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator

from cameras import Picture

from lrtflite import Learner, Progress, SessionReport


class Lesson:
    """Learn a thing from the frames that the loop offers.

    Once it is over, it has a report, or an error if it failed or was cancelled.
    """

    def __init__(self, learner: Learner, name: str, *, seconds: float, fps: float) -> None:
        self.name, self.status = name, ""
        self.report: SessionReport | None = None
        self.error: Exception | None = None
        self.cancelled = threading.Event()
        self._learner, self._seconds, self._fps = learner, seconds, fps
        self._begun, self._count = time.monotonic(), 0
        self._frames: queue.SimpleQueue[Picture | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._learn, daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def offer(self, frame: Picture) -> None:
        """Record frames, `fps` of them per second, until `seconds` are over."""
        past = time.monotonic() - self._begun
        if past >= self._seconds:
            self.finish()
        elif past >= self._count / self._fps:
            self._count += 1
            self._frames.put(frame)
            self.status = f"looking at {self.name}, {past:.0f} of {self._seconds:g} s"

    def finish(self) -> None:
        """Learn from the frames so far."""
        self._frames.put(None)

    def cancel(self) -> None:
        """Learn nothing."""
        self.cancelled.set()
        self.finish()

    def wait(self, seconds: float | None = None) -> None:
        self._thread.join(seconds)

    def _learn(self) -> None:
        # A third thread extracts latents (the features that are learned) during recording.
        try:
            self.report = self._learner.learn(
                self._recorded(), self.name, on_progress=self._progress, cancel=self.cancelled
            )
        except Exception as error:
            self.error = error

    def _recorded(self) -> Iterator[Picture]:
        while (frame := self._frames.get()) is not None:
            yield frame

    def _progress(self, at: Progress) -> None:
        if at.phase == "train":
            self.status = f"learning {self.name}, step {at.done} of {at.total}"
