"""The tray: frames that were unknown or unsure, in RAM, until somebody names them."""

from __future__ import annotations

import itertools
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.errors import Missing
from lrtflite_serve.service.pixels import Frame

MAX_FRAMES = 24
# Least seconds between two frames of the tray.
PAUSE = 1.0
# Mean difference of grey values, of 255, below which two frames count as the same picture.
ALIKE = 8.0
# Side of the small grey pictures that are compared.
SIDE = 8


@dataclass(frozen=True)
class Waiting:
    """A frame that waits for a name; `label` is what it looks like most."""

    id: str
    kind: str
    label: str | None
    familiarity: float | None
    frame: Frame
    small: NDArray[np.float32]

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "kind": self.kind,
            "label": self.label,
            "familiarity": self.familiarity,
        }


class Tray:
    """At most 24 frames, the newest ones, at most one per second and no two alike."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._frames: list[Waiting] = []
        self._lock = threading.Lock()
        # A page that is open while the service starts again must not take one frame for another.
        self._run, self._numbers = secrets.token_hex(4), itertools.count(1)
        self._clock = clock
        self._last = -PAUSE

    def __len__(self) -> int:
        return len(self._frames)

    def offer(self, frame: Frame, kind: str, label: str | None, familiarity: float | None) -> bool:
        """Take a frame unless one was just taken or it looks like another; return whether."""
        with self._lock:
            now = self._clock()
            if now - self._last < PAUSE:
                return False
            small = _small(frame)
            if any(np.abs(small - each.small).mean() < ALIKE for each in self._frames):
                return False
            self._last = now
            waiting = Waiting(
                f"{self._run}-{next(self._numbers)}",
                kind,
                label,
                familiarity,
                frame.copy(),
                small,
            )
            self._frames = [*self._frames, waiting][-MAX_FRAMES:]
            return True

    @property
    def frames(self) -> list[Waiting]:
        """Return the frames, oldest first."""
        return self._frames

    def find(self, ids: Sequence[str]) -> list[Waiting]:
        """Return the frames with these ids, or raise Missing."""
        by_id = {each.id: each for each in self._frames}
        for wanted in ids:
            if wanted not in by_id:
                raise Missing(f"Expected a frame of the tray, got {wanted!r}", "load it again")
        return [by_id[wanted] for wanted in dict.fromkeys(ids)]

    def remove(self, ids: Sequence[str]) -> None:
        """Remove the frames with these ids, or raise Missing."""
        self.find(ids)
        self.drop(ids)

    def drop(self, ids: Sequence[str]) -> None:
        """Remove the frames with these ids; those that are gone already are fine."""
        with self._lock:
            self._frames = [each for each in self._frames if each.id not in ids]

    def clear(self) -> None:
        with self._lock:
            self._frames = []


def _small(frame: Frame) -> NDArray[np.float32]:
    """Return the frame as means of SIDE x SIDE cells, in grey."""
    grey = frame.mean(axis=2, dtype=np.float32)
    step = max(1, len(grey) // SIDE)
    cells = grey[: step * SIDE, : step * SIDE]
    if len(cells) < step * SIDE:
        return np.asarray(cells)
    return np.asarray(cells.reshape(SIDE, step, SIDE, step).mean(axis=(1, 3)))
