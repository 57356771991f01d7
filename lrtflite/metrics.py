"""How well it learns, how much it forgets, how long it takes: the figures of a report."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lrtflite.errors import InputError


def accuracy(
    predicted: ArrayLike, truth: ArrayLike, *, classes: Collection[int] | None = None
) -> float:
    """The share of patterns (N,) whose predicted label is the true one.

    `classes` keeps only the patterns that are truly of these (those seen so far, the first ones);
    None keeps all: the paper's accuracy, over the whole test set, its classes seen or not.
    """
    guess, true = _pair(predicted, truth)
    if classes is not None:
        kept = np.isin(true, list(classes))
        guess, true = guess[kept], true[kept]
    if not len(true):
        raise InputError(
            "Expected at least one test pattern"
            + ("" if classes is None else f" of the classes {sorted(classes)}")
            + ", got none"
        )
    return float(np.mean(guess == true))


def class_accuracy(predicted: ArrayLike, truth: ArrayLike, *, classes: int) -> NDArray[np.float64]:
    """The accuracy of each of `classes` classes, (classes,) float64; NaN where none was tested."""
    matrix = confusion_matrix(predicted, truth, classes=classes)
    tested = matrix.sum(axis=1)
    shares = np.full(classes, np.nan)
    np.divide(np.diagonal(matrix), tested, out=shares, where=tested > 0)
    return shares


def confusion_matrix(predicted: ArrayLike, truth: ArrayLike, *, classes: int) -> NDArray[np.int64]:
    """How often true class i (row) was taken for j (column), (classes, classes) int64."""
    guess, true = _pair(predicted, truth)
    for labels in (guess, true):
        if len(labels) and not (labels.min() >= 0 and labels.max() < classes):
            raise InputError(
                f"Expected labels from 0 to {classes - 1}, got {labels.min()} to {labels.max()}"
            )
    pairs = np.bincount(true * classes + guess, minlength=classes * classes)
    return pairs.reshape(classes, classes).astype(np.int64)


def forgetting(history: ArrayLike, learned: Sequence[int | None]) -> float:
    """How far classes fell from their best: the mean of (best - final accuracy) over classes.

    `history` (sessions, classes) float has each class's accuracy after each session, `learned` the
    session (row) that first taught each class, None if none did. A class's best counts from that
    session on and may be the final one, so nothing is below 0. Classes first taught in the last
    session had no time to be forgotten and are left out, as are untested ones (NaN); 0 with none.
    """
    table = np.asarray(history, np.float64)
    if table.ndim != 2 or not len(table) or table.shape[1] != len(learned):
        raise InputError(
            f"Expected a history of shape (sessions, {len(learned)}), got {table.shape}"
        )
    last = len(table) - 1
    drops = []
    for label, first in enumerate(learned):
        if first is None or first >= last:
            continue
        since = table[max(first, 0) :, label]
        if not np.isnan(since).any():
            drops.append(float(since.max() - since[-1]))
    return float(np.mean(drops)) if drops else 0.0


def percentiles(values: ArrayLike) -> dict[str, float | int]:
    """`{"p50": median, "p95": 95th percentile (linear between neighbours), "n": count}`."""
    numbers = np.asarray(values, np.float64).ravel()
    if not len(numbers):
        raise InputError("Expected at least one measurement, got none")
    p50, p95 = np.percentile(numbers, [50, 95])
    return {"p50": float(p50), "p95": float(p95), "n": len(numbers)}


def _pair(predicted: ArrayLike, truth: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    guess, true = np.asarray(predicted), np.asarray(truth)
    if guess.ndim != 1 or guess.shape != true.shape:
        raise InputError(
            f"Expected one predicted label per true one, (N,), got {guess.shape} and {true.shape}"
        )
    return guess.astype(np.int64), true.astype(np.int64)
