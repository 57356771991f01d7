"""Turns: changes of the state happen one at a time, and a lesson keeps out all others."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lrtflite.errors import Busy

# Seconds that a change waits for another one that is not a lesson.
PATIENCE = 60.0


class Turns:
    """Grant the state to one owner at a time."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._owner: str | None = None
        self._is_lesson = False

    def take(self, wanted: str, *, lesson: str | None = None) -> None:
        """Wait for the end of a short change; raise Busy during a lesson.

        `wanted` completes "Cannot ...". `lesson` says what is going on if the turn is a lesson.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._owner is None or self._is_lesson, PATIENCE)
            if self._owner is not None:
                advice = "finish or cancel it first" if self._is_lesson else "try again later"
                raise Busy(f"Cannot {wanted}: {self._owner}", advice)
            self._owner = lesson or "another change is being made"
            self._is_lesson = lesson is not None
            if self._is_lesson:
                self._changed.notify_all()  # nobody waits for the end of a lesson

    def give_back(self) -> None:
        with self._changed:
            self._owner, self._is_lesson = None, False
            self._changed.notify_all()

    @contextmanager
    def change(self, wanted: str) -> Iterator[None]:
        """Own the state for a block."""
        self.take(wanted)
        try:
            yield
        finally:
            self.give_back()
