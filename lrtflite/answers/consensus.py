"""Settle on one answer over several frames of a video."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lrtflite.answers.prediction import NO_SLOT, Prediction
from lrtflite.arguments import real_number, shown, whole_number
from lrtflite.errors import InputError

if TYPE_CHECKING:
    from lrtflite.learner import Learner

# Kinds of settled answers: a class; none yet; a thing that is unlike everything taught.
KINDS = ANSWER, UNSURE, UNKNOWN = ("answer", "unsure", "unknown")
# Default number of frames in the window, and share of them that has to agree.
FRAMES, SHARE = 5, 0.6
# Rounding allowed in the product of both: 0.7 of 10 frames is 7 frames, not 8.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Settled:
    """An answer for the last frames of a video.

    `kind` is "answer", "unsure" until enough frames agree, or "unknown". `label` and `slot` are
    the class of an "answer", else None and -1. `share` is the share of the last `frames` frames
    that agree with the settled answer, or with the leading one while none has settled.
    """

    kind: str
    label: str | None
    slot: int
    share: float
    frames: int


@dataclass(frozen=True)
class _Frame:
    """An answer for one frame: a slot, NO_SLOT for unknown, None if only `unknown` was given."""

    answer: int | None
    chances: dict[int, float]
    labels: dict[int, str]


class Consensus:
    """Turn the answers for single frames into one that does not flicker.

    An answer settles once `share` of `frames` frames in a window of the last `frames` agree on it,
    and the probabilities of the window add up to most for it. It stays until another one settles,
    or until no frame of the window agrees with it. A frame that is less familiar than `threshold`
    counts as unknown, whatever the learner answered; without a threshold, a frame counts as
    unknown if the learner said so.
    """

    def __init__(
        self, *, frames: int = FRAMES, share: float = SHARE, threshold: float | None = None
    ) -> None:
        frames = whole_number("frames", frames, least=1)
        share = real_number("share", share, most=1.0)
        if threshold is not None:
            threshold = real_number("threshold", threshold, most=1.0)
        self.threshold = threshold
        self._needed = max(1, math.ceil(share * frames - ROUNDING))
        self._window: deque[_Frame] = deque(maxlen=frames)
        self._settled: int | None = None

    @classmethod
    def of(cls, learner: Learner, **options: Any) -> Consensus:
        """Return a consensus with the threshold of a learner, else of its bundle, else without.

        `options` are those of `Consensus`.
        """
        own = learner.unknown
        threshold = learner.bundle.manifest.unknown if own is None else own
        return cls(**{"threshold": threshold, **options})

    def add(self, guesses: Sequence[Prediction]) -> Settled:
        """Take the guesses of `predict` for the next frame, and return the settled answer."""
        self._window.append(self._frame(guesses))
        agreeing = Counter(frame.answer for frame in self._window if frame.answer is not None)
        leader = self._leader(agreeing)
        if leader is not None and agreeing[leader] >= self._needed:
            self._settled = leader
        elif self._settled not in agreeing:
            self._settled = None
        seen = len(self._window)
        if self._settled is None:
            share = 0.0 if leader is None else agreeing[leader] / seen
            return Settled(UNSURE, None, NO_SLOT, share, seen)
        share = agreeing[self._settled] / seen
        if self._settled == NO_SLOT:
            return Settled(UNKNOWN, None, NO_SLOT, share, seen)
        return Settled(ANSWER, self._label(self._settled), self._settled, share, seen)

    def clear(self) -> None:
        """Forget all frames, as after a change of what the learner knows."""
        self._window.clear()
        self._settled = None

    def _frame(self, guesses: Sequence[Prediction]) -> _Frame:
        if (
            isinstance(guesses, Prediction)
            or not guesses
            or not all(isinstance(guess, Prediction) for guess in guesses)
        ):
            raise InputError(
                f"Expected the guesses for one frame, got {shown(guesses)}",
                "give one row of what `predict` returns",
            )
        first, classes = guesses[0], [guess for guess in guesses if guess.slot != NO_SLOT]
        familiarity, refused = first.familiarity, first.slot == NO_SLOT
        # `predict` gives the classes of a refused frame no more than its familiarity.
        left = familiarity if refused and familiarity else 1.0
        if self.threshold is not None and familiarity is not None:
            refused = familiarity < self.threshold
        return _Frame(
            NO_SLOT if refused else classes[0].slot if classes else None,
            {} if refused else {guess.slot: guess.probability / left for guess in classes},
            {guess.slot: guess.label for guess in classes},
        )

    def _leader(self, agreeing: Counter[int]) -> int | None:
        """Return the answer of most frames if that is unknown, else the likeliest class."""
        if not agreeing:
            return None
        if agreeing[NO_SLOT] >= max(agreeing.values()):
            return NO_SLOT
        chances: Counter[int] = Counter()
        for frame in self._window:
            chances.update(frame.chances)
        return max(agreeing, key=lambda slot: (chances[slot], agreeing[slot]))

    def _label(self, slot: int) -> str:
        """Return the newest label of a slot, which a rename may have changed."""
        return next(frame.labels[slot] for frame in reversed(self._window) if slot in frame.labels)
