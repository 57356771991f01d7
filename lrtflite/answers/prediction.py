"""Turn probabilities into labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrtflite.labels import UNKNOWN as UNKNOWN

# The slot of a frame that is unlike everything taught.
NO_SLOT = -1
# Smallest sum of the classes' probabilities to divide by.
TINY = 1e-30


@dataclass(frozen=True)
class Prediction:
    """An answer for one frame.

    `familiarity` is the place of the frame between the other classes, 0, and the likeliest class, 1
    (docs/closed-form.md#unknown); None for heads that do not report it. `unknown` has the slot -1.
    `is_background` is true for `unknown` where the frame looks like the background more than like
    any class.

    The probabilities of all answers for a frame add up to 1. For a frame that is answered as
    unknown, `unknown` has 1 - familiarity, or the probability of the background, and the classes
    share the rest in proportion to the head's probabilities.
    """

    label: str
    probability: float
    slot: int
    familiarity: float | None = None
    is_background: bool = False


@dataclass(frozen=True)
class Answers:
    """The answers of a head: probabilities (n, C), and familiarity (n,) if the head reports it."""

    probabilities: NDArray[np.float32]
    familiarity: NDArray[np.float32] | None = None


def top_predictions(
    answers: Answers,
    labels: Sequence[str | None],
    *,
    top: int,
    unknown: float | None = None,
    background: int | None = None,
) -> list[list[Prediction]]:
    """Return the `top` labels of each row, most likely first; skip empty slots.

    A row that is less familiar than `unknown`, or whose likeliest slot is `background`, begins with
    UNKNOWN; see `Prediction` for its probabilities.
    """
    predictions = []
    for row, chances in enumerate(answers.probabilities):
        familiarity = None if answers.familiarity is None else float(answers.familiarity[row])
        empty, left = 0.0, 1.0
        if background is not None:
            empty, chances = float(chances[background]), chances.copy()
            chances[background] = 0
        is_background = empty > float(chances.max())
        if is_background:
            left = 1.0 - empty
        elif unknown is not None and familiarity is not None and familiarity < unknown:
            left = familiarity
        # The background is not an answer, so the classes share its probability.
        share = left / max(1.0 - empty, TINY)
        guesses = [
            Prediction(label, float(chances[slot]) * share, int(slot), familiarity)
            for slot in np.argsort(-chances, kind="stable")[:top]
            if chances[slot] > 0 and (label := labels[slot]) is not None
        ]
        if left < 1:
            first = Prediction(UNKNOWN, 1 - left, NO_SLOT, familiarity, is_background)
            guesses = [first, *guesses][:top]
        predictions.append(guesses)
    return predictions
