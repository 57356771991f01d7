"""A lesson that is still being recorded: its frames, its numbers, its hints."""

from __future__ import annotations

import secrets
import threading
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite import Learner, Lesson, SessionReport
from lrtflite.errors import Busy, InputError, LrtfliteError, SessionCancelled, TooLarge
from lrtflite.frames.hints import FrameHints
from lrtflite.labels import BACKGROUND, Label
from lrtflite.session.enough import EnoughFrames
from lrtflite.state.slots import Slots
from lrtflite_serve.service.pixels import Frame, as_png
from lrtflite_serve.settings import MAX_FRAMES

# Most frames of one lesson that are kept as pictures.
MAX_KEPT = 200
# Frames that may wait for extraction before whoever sends them has to wait.
MAX_WAITING = 16
# Different frames without which a lesson has not enough.
MIN_FRESH = 15
# Most latents that are kept to see what the thing is confused with.
MAX_LATENTS = 64
RECORDING, LEARNING, LEARNED = "recording", "learning", "learned"
CANCELLED, FAILED = "cancelled", "failed"
ENDED = frozenset({LEARNED, CANCELLED, FAILED})


@dataclass(frozen=True)
class Place:
    """The class that a lesson is about; `by_slot` if it was named by its slot number.

    `background` is true for a new background.
    """

    label: str
    slot: int
    new: bool
    by_slot: bool
    background: bool = False

    @classmethod
    def of(cls, learner: Learner, label: Label | None, slot: int | None) -> Place:
        """Return the class to teach, or raise InputError for a name that cannot be one.

        The label of the background, which can be that of no other class, means the background.
        """
        before = learner.labels
        if slot is None and label == BACKGROUND and BACKGROUND not in before:
            found, _ = Slots(before).place_background()
            return cls(BACKGROUND, int(found), new=True, by_slot=False, background=True)
        number, slots = Slots(before).place(label, slot=slot)
        return cls(str(slots.labels[number]), number, before[number] is None, slot is not None)

    @property
    def target(self) -> tuple[str | None, int | None]:
        """Return the label or the slot by which the class was named, and None for the other.

        Both are None for a new background.
        """
        if self.background:
            return None, None
        return (None, self.slot) if self.by_slot else (self.label, None)


class Recording:
    """One lesson, from its first frame to its result or error.

    `keep` has every frame as a PNG if pictures are kept; `sample` is a frame for the thumbnail.
    """

    def __init__(
        self, learner: Learner, place: Place, *, keep: bool = False, device: bool = False
    ) -> None:
        self.id = secrets.token_hex(8)
        self.label, self.slot, self.new, self.device = place.label, place.slot, place.new, device
        self.state = RECORDING
        self.begun = self.heard = time.monotonic()
        self.kept: list[bytes] = []
        self.sample: Frame | None = None
        self.latents: list[NDArray[Any]] = []
        self.result: dict[str, Any] | None = None
        self.error: Exception | None = None
        # Reason why the lesson cannot go on, such as a lost camera.
        self.failure: LrtfliteError | None = None
        # Held while a frame is added, and while the lesson ends.
        self.lock = threading.Lock()
        self.ended = threading.Event()
        self._keep = keep
        self._hints = FrameHints()
        self._enough = EnoughFrames(learner.memory, slot=None if place.new else place.slot)
        self._newest_hints: tuple[str, ...] = ()
        label, slot = place.target
        self._lesson = Lesson(
            learner, label, slot=slot, background=place.background, on_latent=self._see
        )

    @property
    def frames(self) -> int:
        return self._lesson.frames

    @property
    def waiting(self) -> int:
        """Return the number of frames that wait for extraction."""
        return self._lesson.frames - self._lesson.extracted

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.begun

    @property
    def is_over(self) -> bool:
        return self._lesson.is_over

    def add(self, frame: Frame, number: int | None = None) -> None:
        """Take the next frame; ignore one that was taken already; raise Busy for a gap."""
        with self.lock:
            self.heard = time.monotonic()
            self.check_open()
            if number is not None and number < self.frames:
                return
            if number is not None and number > self.frames:
                raise Busy(
                    f"Expected frame {self.frames} of the lesson, got {number}",
                    f"send frame {self.frames} again",
                )
            if self.frames >= MAX_FRAMES:
                raise TooLarge(
                    f"Expected at most {MAX_FRAMES} frames in a lesson, got one more",
                    "finish the lesson",
                )
            self._newest_hints = tuple(self._hints.add(frame))
            count = self.frames
            if count & (count - 1) == 0:  # 0, 1, 2, 4, ...: ends near the middle of the lesson
                self.sample = frame.copy()
            if self._keep and len(self.kept) < MAX_KEPT:
                self.kept.append(as_png(frame))
            self._lesson.add(frame)

    def touch(self) -> None:
        """Note that a client still speaks of this lesson."""
        self.heard = time.monotonic()

    def check_open(self) -> None:
        """Raise the error of a lesson that takes no frames any more."""
        if self.state == RECORDING and self._lesson.is_over and self._lesson.error is not None:
            raise self._lesson.error
        if self.state == CANCELLED:
            raise cancelled(self.label)
        if self.state != RECORDING:
            raise Busy(f"Cannot add frames to {self.label}: it is {self.state}", "teach it again")

    def run(self) -> SessionReport:
        """Learn from the frames so far and return the report, or raise the lesson's error."""
        if not self.frames:
            self._stop()
            raise InputError(
                "Expected at least one frame to learn from, got an empty lesson", "add frames"
            )
        self._lesson.finish()
        self._lesson.wait()
        if self._lesson.error is not None:
            raise self._lesson.error
        assert self._lesson.report is not None
        return self._lesson.report

    def stop(self) -> bool:
        """Cancel; return whether the lesson ended before it was committed."""
        self._stop()
        return self._lesson.report is None

    def _stop(self) -> None:
        self._lesson.cancel()
        self._lesson.wait()

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "label": self.label,
            "slot": self.slot,
            "new": self.new,
            "state": self.state,
            "frames": self.frames,
            "extracted": self._lesson.extracted,
            "hints": list(self._newest_hints),
            "enough": self._enough.enough and self._hints.fresh >= MIN_FRESH,
            "seconds": round(self.seconds, 2),
        }

    def _see(self, latent: NDArray[Any]) -> None:
        self._enough.add(latent)
        if len(self.latents) < MAX_LATENTS:
            self.latents.append(np.array(latent))


def cancelled(label: str) -> SessionCancelled:
    return SessionCancelled(f"The lesson about {label} was cancelled", "teach it again")


def quoted(label: str) -> str:
    """Return a label for a sentence; that of the background, which reads as words, in quotes."""
    return f'"{label}"' if label == BACKGROUND else label
