"""Cancellation, timings and the report of a session."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from lrtflite.errors import SessionCancelled
from lrtflite.progress import OnProgress, Phase, Progress
from lrtflite.session.diagnosis import Diagnosis


@dataclass(frozen=True)
class SessionReport:
    """The result of a session. `timings` has the milliseconds of each run of each phase.

    `loss` and `accuracy` are means over the last epoch; None for a head without training steps.
    `diagnosis` is None unless it was requested. `notes` warn of frames that teach little.
    """

    session: int
    frames: int
    labels: tuple[str, ...]
    steps: int
    loss: float | None
    accuracy: float | None
    replay_patterns: int
    ready_to_committed_ms: float
    timings: dict[str, list[float]] = field(repr=False)
    diagnosis: Diagnosis | None = None
    notes: tuple[str, ...] = ()


class Session:
    """Reports every step to the caller, and stops if the caller asks for it."""

    def __init__(self, on_progress: OnProgress | None, cancel: threading.Event | None) -> None:
        self._on_progress = on_progress
        self._cancel = cancel
        self._timings: defaultdict[str, list[float]] = defaultdict(list)

    @property
    def timings(self) -> dict[str, list[float]]:
        return dict(self._timings)

    def report(self, phase: str, done: int, total: int | None) -> None:
        """Pass progress on; raise SessionCancelled if cancelled, unless already committed."""
        if phase != Phase.CHECKPOINT and self._cancel is not None and self._cancel.is_set():
            raise SessionCancelled(
                f"The session was cancelled in {phase}, after {done} of it",
                "learn again to continue from the state before it",
            )
        if self._on_progress is not None:
            self._on_progress(Progress(phase, done, total))

    def apart(self) -> Session:
        """Return a session that is cancelled with this one, and reports nothing."""
        return Session(None, self._cancel)

    @contextmanager
    def clock(self, phase: str) -> Iterator[None]:
        started = self.now()
        try:
            yield
        finally:
            self._timings[phase].append(self.since(started))

    def now(self) -> float:
        return time.perf_counter()

    def since(self, started: float) -> float:
        """Return the milliseconds since `now()` returned `started`."""
        return 1e3 * (time.perf_counter() - started)
