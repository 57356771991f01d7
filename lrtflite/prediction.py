"""Turn probabilities into labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Prediction:
    label: str
    probability: float
    slot: int


def top_predictions(
    probabilities: NDArray[np.float32], labels: Sequence[str | None], *, top: int
) -> list[list[Prediction]]:
    """Return the `top` labels of each row (slots,), most likely first; skip empty slots."""
    return [
        [
            Prediction(label, float(row[slot]), int(slot))
            for slot in np.argsort(-row, kind="stable")[:top]
            if row[slot] > 0 and (label := labels[slot]) is not None
        ]
        for row in probabilities
    ]
