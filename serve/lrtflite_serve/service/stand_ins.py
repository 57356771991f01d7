"""Stand-ins for parts of the library that are being written."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite import Learner, Prediction, SessionReport
from lrtflite.errors import LrtfliteError
from lrtflite.prediction import NO_SLOT, UNKNOWN


class CameraError(LrtfliteError):
    pass


@dataclass(frozen=True)
class Settled:
    kind: str
    label: str | None
    slot: int
    share: float
    frames: int


class Consensus:
    def __init__(self, *, frames: int = 10, share: float = 0.6) -> None:
        self._window: deque[str] = deque(maxlen=frames)
        self._slots: dict[str, int] = {}
        self._share = share

    @classmethod
    def of(cls, learner: Learner, **options: Any) -> Consensus:
        return cls(**options)

    def add(self, guesses: list[Prediction]) -> Settled:
        self._window.append(guesses[0].label)
        self._slots[guesses[0].label] = guesses[0].slot
        label = max(set(self._window), key=self._window.count)
        share = self._window.count(label) / len(self._window)
        if len(self._window) < 3 or share < self._share:
            return Settled("unsure", None, NO_SLOT, share, len(self._window))
        if label == UNKNOWN:
            return Settled("unknown", None, NO_SLOT, share, len(self._window))
        return Settled("answer", label, self._slots[label], share, len(self._window))

    def clear(self) -> None:
        self._window.clear()


class Lesson:
    def __init__(
        self,
        learner: Learner,
        label: str | None = None,
        *,
        slot: int | None = None,
        seconds: float | None = None,
        fps: float | None = None,
        on_latent: Callable[[NDArray[Any]], None] | None = None,
    ) -> None:
        self.report: SessionReport | None = None
        self.error: Exception | None = None
        self.frames = self.extracted = 0
        self._learner, self._label, self._slot = learner, label, slot
        self._cancel = threading.Event()
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._learn, daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def add(self, frame: NDArray[np.uint8]) -> None:
        self.frames += 1
        self._queue.put(frame)

    def finish(self) -> None:
        self._queue.put(None)

    def cancel(self) -> None:
        self._cancel.set()
        self._queue.put(None)

    def wait(self, seconds: float | None = None) -> None:
        self._thread.join(seconds)

    def _learn(self) -> None:
        try:
            self.report = self._learner.learn(
                self._recorded(), self._label, slot=self._slot, cancel=self._cancel
            )
        except Exception as error:
            self.error = error

    def _recorded(self) -> Iterator[NDArray[np.uint8]]:
        while (frame := self._queue.get()) is not None:
            yield frame
            self.extracted += 1


class FrameHints:
    def add(self, frame: NDArray[np.uint8]) -> tuple[str, ...]:
        return ()


class EnoughFrames:
    enough = False

    def __init__(self, learner: Learner | None = None, slot: int | None = None) -> None:
        pass

    def add(self, latent: NDArray[Any]) -> None:
        pass


def open_camera(source: str | None, *, speed: float = 1.0) -> Any:
    raise CameraError(f"Expected a camera at {source}, got none; connect one")
