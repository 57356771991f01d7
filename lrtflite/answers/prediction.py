"""Turn probabilities into labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrtflite.labels import UNKNOWN as UNKNOWN

# The slot of a frame that is unlike everything taught.
NO_SLOT = -1


@dataclass(frozen=True)
class Prediction:
    """An answer for one frame.

    `familiarity` is the share of the patterns taught for the likeliest class that are less typical
    of it than this frame; None for heads that do not report it. `unknown` has the slot -1.

    The probabilities of all answers for a frame add up to 1. For a frame that is answered as
    unknown, `unknown` has 1 - familiarity, and the classes share the familiarity in proportion to
    the head's probabilities.
    """

    label: str
    probability: float
    slot: int
    familiarity: float | None = None


@dataclass(frozen=True)
class Answers:
    """The answers of a head: probabilities (n, C), and familiarity (n,) if the head reports it."""

    probabilities: NDArray[np.float32]
    familiarity: NDArray[np.float32] | None = None


def top_predictions(
    answers: Answers, labels: Sequence[str | None], *, top: int, unknown: float | None = None
) -> list[list[Prediction]]:
    """Return the `top` labels of each row, most likely first; skip empty slots.

    A row that is less familiar than `unknown` begins with UNKNOWN; see `Prediction` for its
    probabilities.
    """
    found = []
    for row, chances in enumerate(answers.probabilities):
        familiarity = None if answers.familiarity is None else float(answers.familiarity[row])
        left = 1.0
        if unknown is not None and familiarity is not None and familiarity < unknown:
            left = familiarity
        guesses = [
            Prediction(label, float(chances[slot]) * left, int(slot), familiarity)
            for slot in np.argsort(-chances, kind="stable")[:top]
            if chances[slot] > 0 and (label := labels[slot]) is not None
        ]
        if left < 1:
            guesses = [Prediction(UNKNOWN, 1 - left, NO_SLOT, familiarity), *guesses][:top]
        found.append(guesses)
    return found
