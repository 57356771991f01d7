"""Answers and lessons as messages: one for each change, and few in between."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

# Smallest number of seconds between two answers that differ in their numbers only.
PAUSE = 2.0
# State of a lesson before the first one.
IDLE: dict[str, Any] = {"state": "idle"}
UNKNOWN, UNSURE, NOTHING = "unknown", "unsure", "nothing learned"


class Answers:
    """The settled answers that are worth a message."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: tuple[Any, ...] | None = None
        self._after = 0.0

    def message(self, answer: dict[str, Any]) -> dict[str, Any] | None:
        """Return the message for an answer of the service, or None if it says nothing new."""
        found = described(answer)
        key = (found["state"], found["kind"], found["slot"])
        now = self._clock()
        if key == self._last and now < self._after:
            return None
        self._last, self._after = key, now + PAUSE
        return found

    def clear(self) -> None:
        """Let the next answer be a message, whatever it says."""
        self._last = None


def described(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer of the service with the one text that Home Assistant shows as its state."""
    settled = answer.get("settled") or {}
    kind = settled.get("kind", UNSURE)
    label = settled.get("label")
    if answer.get("nothing_learned"):
        state = NOTHING
    elif kind == "answer" and label is not None:
        state = label
    else:
        state = UNKNOWN if kind == UNKNOWN else UNSURE
    likeliest: dict[str, Any] = next(iter(answer.get("answers", ())), {})
    return {
        "state": state,
        "kind": kind,
        "label": label,
        "slot": settled.get("slot", -1) if label is not None else None,
        "share": settled.get("share"),
        "familiarity": answer.get("familiarity"),
        "likeliest": likeliest.get("label"),
        "probability": likeliest.get("probability"),
    }


def lesson_message(lesson: dict[str, Any]) -> dict[str, Any]:
    """Return the message for an event about a lesson, without its long parts."""
    found = {name: lesson.get(name) for name in ("state", "label", "slot", "frames", "seconds")}
    report = lesson.get("report") or {}
    return {
        **found,
        "error": lesson.get("error"),
        "notes": report.get("notes", []),
        "confused": report.get("confused", []),
    }


def problem_message(problem: str) -> dict[str, Any]:
    """Return the message for a command that was refused."""
    return {"state": "refused", "error": problem}
