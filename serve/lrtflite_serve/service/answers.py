"""Answers as JSON, and what a class is confused with."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite import Learner, Prediction

# Smallest mean probability of another class that is worth a word, and most classes named.
SHARE, NAMED = 0.05, 3


def answer_json(
    guesses: Sequence[Prediction],
    settled: dict[str, Any] | None,
    started: float,
    *,
    nothing_learned: bool = False,
) -> dict[str, Any]:
    """Return the answer to `predict`; `started` is the time at which the work began."""
    return {
        "answers": [
            {
                "label": guess.label,
                "slot": guess.slot,
                "probability": round(guess.probability, 5),
            }
            for guess in guesses
        ],
        "familiarity": familiarity_of(guesses),
        "settled": settled,
        "ms": round(1e3 * (time.perf_counter() - started), 2),
        **({"nothing_learned": True} if nothing_learned else {}),
    }


def familiarity_of(guesses: Sequence[Prediction]) -> float | None:
    found = guesses[0].familiarity if guesses else None
    return None if found is None else round(found, 5)


def confused_with(learner: Learner, latents: NDArray[Any], slot: int) -> list[dict[str, Any]]:
    """Return the other classes that get a mean probability of 5 % or more for these latents."""
    shares = learner.probabilities(latents).mean(axis=0)
    shares[slot] = 0
    return [
        {"label": label, "slot": int(other), "share": round(float(shares[other]), 4)}
        for other in np.argsort(-shares, kind="stable")[:NAMED]
        if shares[other] >= SHARE and (label := learner.labels[other]) is not None
    ]
