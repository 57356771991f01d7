"""Metrics beyond the final accuracy: average, forward and backward transfer, memory, aging.

The history of a run is the accuracy of each class after each session, (sessions, classes), as
`forgetting` in `lrtflite.workbench.metrics` takes it. The transfers are those of Lopez-Paz and
Ranzato (GEM, 2017), with classes in the place of tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lrtflite.errors import InputError


@dataclass(frozen=True)
class MemoryOverhead:
    """Bytes that continual learning needs on top of a network that only infers.

    `data` are the stored patterns; `parameters` are the tensors that a head keeps in its state,
    such as its trained weights and the importance of each.
    """

    data: int
    parameters: int

    @property
    def megabytes(self) -> float:
        """Return both together, in MB of 10^6 bytes."""
        return (self.data + self.parameters) / 1e6

    def __str__(self) -> str:
        return f"{self.data / 1e6:.1f} + {self.parameters / 1e6:.1f} MB"


def average_accuracy(history: ArrayLike, learned: Sequence[int | None]) -> float:
    """Return the mean over sessions of the mean accuracy of the classes taught so far.

    `learned` has the row that first taught each class, or None. Rows before the first taught class
    and untested classes (NaN) are left out.
    """
    table = _table(history, learned)
    means = []
    for row in range(len(table)):
        taught = [label for label, first in enumerate(learned) if first is not None]
        known = [label for label in taught if (learned[label] or 0) <= row]
        values = table[row, known]
        values = values[~np.isnan(values)]
        if len(values):
            means.append(float(values.mean()))
    if not means:
        raise InputError(
            "Expected at least one class that was taught and tested, got none", "teach one"
        )
    return float(np.mean(means))


def backward_transfer(history: ArrayLike, learned: Sequence[int | None]) -> float:
    """Return the mean over classes of (final accuracy - accuracy after the first session with it).

    Negative if later sessions harmed what was known. Classes first taught in the last session and
    untested ones (NaN) are left out. The result is 0 if no class is left.
    """
    table = _table(history, learned)
    last = len(table) - 1
    gains = [
        float(table[last, label] - table[max(first, 0), label])
        for label, first in enumerate(learned)
        if first is not None and first < last
    ]
    return _mean(gains)


def forward_transfer(
    history: ArrayLike, learned: Sequence[int | None], *, chance: float = 0.0
) -> float:
    """Return the mean over classes of (accuracy just before the first session with it - chance).

    A head that answers with learned classes only cannot answer with a class before it is taught, so
    its result is minus `chance`. Classes taught in the first row and untested ones (NaN) are left
    out. The result is 0 if no class is left.
    """
    table = _table(history, learned)
    gains = [
        float(table[first - 1, label]) - chance
        for label, first in enumerate(learned)
        if first is not None and first > 0
    ]
    return _mean(gains)


def aging(stored: ArrayLike, fresh: ArrayLike) -> float:
    """Return the mean distance of stored latents from fresh ones, relative to the fresh ones.

    Both are (N, ...): latents as the memory holds them, and those that the features give for the
    same frames now. 0 means that nothing has aged; features that are frozen give 0. Latents of
    zeros are left out.
    """
    old, new = np.asarray(stored, np.float64), np.asarray(fresh, np.float64)
    if old.shape != new.shape or old.ndim < 2 or not len(old):
        raise InputError(
            f"Expected as many stored latents as fresh ones, (N, ...), got {old.shape} and "
            f"{new.shape}",
            "extract the frames of the stored latents again",
        )
    old, new = old.reshape(len(old), -1), new.reshape(len(new), -1)
    norms = np.linalg.norm(new, axis=1)
    kept = norms > 0
    if not kept.any():
        raise InputError("Expected a latent that is not zero, got none", "check the features")
    return float(np.mean(np.linalg.norm(old - new, axis=1)[kept] / norms[kept]))


def _table(history: ArrayLike, learned: Sequence[int | None]) -> NDArray[np.float64]:
    table = np.asarray(history, np.float64)
    if table.ndim != 2 or not len(table) or table.shape[1] != len(learned):
        raise InputError(
            f"Expected a history of shape (sessions, {len(learned)}), got {table.shape}",
            "give a column for each class",
        )
    return table


def _mean(values: Sequence[float]) -> float:
    tested = [value for value in values if not np.isnan(value)]
    return float(np.mean(tested)) if tested else 0.0
