"""Settle on one answer over several frames of a video."""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lrtflite.answers.prediction import NO_SLOT, Prediction
from lrtflite.arguments import real_number, shown, whole_number
from lrtflite.errors import InputError

if TYPE_CHECKING:
    from lrtflite.learner import Learner

# Kinds of settled answers: a class; none yet; a thing that is unlike everything taught.
KINDS = ANSWER, UNSURE, UNKNOWN = ("answer", "unsure", "unknown")
# Default number of frames in the window, and share of them that has to agree.
FRAMES, SHARE = 5, 0.6
# Least share that the likeliest class must have of the probabilities of the two likeliest ones,
# added up over the window. Chosen together with the two above: docs/studies/settled-answers.md.
LEAD = 0.57
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

    An answer settles once it is that of `share` of `frames` frames, among the last `frames`, and
    the probabilities of these frames add up to clearly more for it than for any other class. It
    stays until another one settles, or until none of the last frames agrees with it. A frame that
    is less familiar than `threshold` counts as unknown, whatever the learner answered; without a
    threshold, a frame counts as unknown if the learner said so.
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
    def of(
        cls,
        learner: Learner,
        *,
        frames: int = FRAMES,
        share: float = SHARE,
        threshold: float | None = None,
    ) -> Consensus:
        """Return a consensus whose threshold is the learner's by default, else its bundle's."""
        for default in (learner.unknown, learner.bundle.manifest.unknown):
            threshold = default if threshold is None else threshold
        return cls(frames=frames, share=share, threshold=threshold)

    def add(self, guesses: Sequence[Prediction]) -> Settled:
        """Take the guesses of `predict` for the next frame, and return the settled answer."""
        self._window.append(self._frame(guesses))
        agreeing = Counter(frame.answer for frame in self._window if frame.answer is not None)
        leader, lead = self._leader(agreeing)
        if leader is not None and agreeing[leader] >= self._needed and lead >= LEAD:
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
            refused = first.is_background or familiarity < self.threshold
        return _Frame(
            NO_SLOT if refused else classes[0].slot if classes else None,
            {} if refused else {guess.slot: guess.probability / left for guess in classes},
            {guess.slot: guess.label for guess in classes},
        )

    def _leader(self, agreeing: Counter[int]) -> tuple[int | None, float]:
        """Return the leading answer, and its share against the next one.

        That is unknown where most frames are, else the likeliest class that some frame answers.
        """
        if not agreeing:
            return None, 0.0
        if agreeing[NO_SLOT] >= max(agreeing.values()):
            return NO_SLOT, 1.0
        chances: defaultdict[int, float] = defaultdict(float)
        for frame in self._window:
            for slot, chance in frame.chances.items():
                chances[slot] += chance
        leader = max(
            (slot for slot in agreeing if slot != NO_SLOT),
            key=lambda slot: (chances[slot], agreeing[slot]),
        )
        others = max((chance for slot, chance in chances.items() if slot != leader), default=0.0)
        both = chances[leader] + others
        return leader, chances[leader] / both if both > 0 else 1.0

    def _label(self, slot: int) -> str:
        """Return the newest label of a slot, which a rename may have changed."""
        return next(frame.labels[slot] for frame in reversed(self._window) if slot in frame.labels)
