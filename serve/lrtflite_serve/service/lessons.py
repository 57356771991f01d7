"""Lessons: one at a time, resumed after a lost connection, or cancelled without a trace."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from lrtflite.errors import LrtfliteError, Missing, SessionCancelled
from lrtflite_serve.service.recording import (
    CANCELLED,
    ENDED,
    FAILED,
    LEARNED,
    LEARNING,
    RECORDING,
    Recording,
    cancelled,
)
from lrtflite_serve.service.turns import Turns

# Seconds without a frame or a question after which a lesson is cancelled.
SILENCE = 30.0
# Ended lessons whose results can be asked for again.
MAX_ENDED = 8

Complete = Callable[[Recording], dict[str, Any]]
OnChange = Callable[[Recording], None]


class Lessons:
    """The current lesson, and the results of the last ones.

    `complete` learns from a recording and returns the result; `on_change` hears of each new state
    of a lesson, with its turn taken until it has ended.
    """

    def __init__(self, turns: Turns, complete: Complete, on_change: OnChange) -> None:
        self._turns, self._complete, self._on_change = turns, complete, on_change
        self._lessons: OrderedDict[str, Recording] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def current(self) -> Recording | None:
        """Return the lesson that has not ended, if any."""
        with self._lock:
            return next((each for each in self._lessons.values() if each.state not in ENDED), None)

    def begin(self, label: str, make: Callable[[], Recording]) -> Recording:
        """Begin a lesson; raise Busy during another one."""
        self._turns.take(f"teach {label}", lesson=f"{label} is being taught")
        try:
            recording = make()
        except BaseException:
            self._turns.give_back()
            raise
        with self._lock:
            self._lessons[recording.id] = recording
            while len(self._lessons) > MAX_ENDED:
                self._lessons.popitem(last=False)
        self._on_change(recording)
        return recording

    def find(self, lesson: str) -> Recording:
        with self._lock:
            if lesson not in self._lessons:
                raise Missing("Expected the id of a lesson, got another one", "begin a new lesson")
            return self._lessons[lesson]

    def commit(self, lesson: str) -> dict[str, Any]:
        """Learn, and return the result; a second call returns it again."""
        recording = self.find(lesson)
        with recording.lock:
            begins = recording.state == RECORDING
            if begins:
                recording.state = LEARNING
        if begins:
            self._on_change(recording)
            self._learn(recording)
        recording.ended.wait()
        if recording.error is not None:
            raise recording.error
        assert recording.result is not None
        return recording.result

    def cancel(self, lesson: str, *, problem: Exception | None = None) -> None:
        """End a lesson without a trace, unless it was committed already.

        A `problem` of its camera ends it only while it is recording.
        """
        recording = self.find(lesson)
        with recording.lock:
            ends = recording.state == RECORDING
            if ends:
                recording.state = LEARNING  # takes no more frames
        if not ends and problem is not None:
            return
        if not ends:
            # The thread that commits sees the cancellation, or has committed.
            if recording.state not in ENDED:
                recording.stop()
            recording.ended.wait()
            return
        recording.stop()
        state = CANCELLED if problem is None else FAILED
        self._end(recording, state, problem or cancelled(recording.label))

    def tick(self) -> None:
        """Cancel a lesson that nobody has spoken of for long."""
        recording = self.current
        if recording is None or recording.state != RECORDING or recording.device:
            return
        if time.monotonic() - recording.heard >= SILENCE:
            self.cancel(recording.id)

    def close(self) -> None:
        """Cancel the current lesson."""
        recording = self.current
        if recording is not None:
            self.cancel(recording.id)

    def _learn(self, recording: Recording) -> None:
        try:
            recording.result = self._complete(recording)
        except SessionCancelled:
            self._end(recording, CANCELLED, cancelled(recording.label))
        except LrtfliteError as error:
            self._end(recording, FAILED, error)
        except BaseException as error:
            self._end(recording, FAILED, _internal(error))
            raise
        else:
            self._end(recording, LEARNED, None)

    def _end(self, recording: Recording, state: str, error: Exception | None) -> None:
        recording.error, recording.state = error, state
        recording.kept, recording.latents, recording.sample = [], [], None
        self._turns.give_back()
        recording.ended.set()
        self._on_change(recording)


def _internal(error: BaseException) -> LrtfliteError:
    return LrtfliteError(
        f"The lesson failed: {type(error).__name__}: {error}", "see the log of the service"
    )
