"""Accuracy, forgetting and percentiles of times: the figures of a report."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lrtflite.errors import InputError


def accuracy(
    predicted: ArrayLike, truth: ArrayLike, *, classes: Collection[int] | None = None
) -> float:
    """Return the share of patterns (N,) whose predicted label is the true one.

    `classes` keeps only patterns whose true class is among these, for example the classes seen so
    far. None keeps all patterns, as in the paper: the complete test set, whether or not its classes
    were seen.
    """
    guess, true = _pair(predicted, truth)
    if classes is not None:
        kept = np.isin(true, list(classes))
        guess, true = guess[kept], true[kept]
    if not len(true):
        raise InputError(
            "Expected at least one test pattern"
            + ("" if classes is None else f" of the classes {sorted(classes)}")
            + ", got none; add test pictures"
        )
    return float(np.mean(guess == true))


def class_accuracy(predicted: ArrayLike, truth: ArrayLike, *, classes: int) -> NDArray[np.float64]:
    """Return the accuracy of each class, (classes,) float64; NaN for an untested class."""
    matrix = confusion_matrix(predicted, truth, classes=classes)
    tested = matrix.sum(axis=1)
    shares = np.full(classes, np.nan)
    np.divide(np.diagonal(matrix), tested, out=shares, where=tested > 0)
    return shares


def confusion_matrix(predicted: ArrayLike, truth: ArrayLike, *, classes: int) -> NDArray[np.int64]:
    """Return counts of true class i (row) predicted as j (column), (classes, classes) int64."""
    guess, true = _pair(predicted, truth)
    for labels in (guess, true):
        if len(labels) and not (labels.min() >= 0 and labels.max() < classes):
            raise InputError(
                f"Expected labels from 0 to {classes - 1}, got {labels.min()} to {labels.max()}",
                "check `classes`",
            )
    pairs = np.bincount(true * classes + guess, minlength=classes * classes)
    return pairs.reshape(classes, classes).astype(np.int64)


def forgetting(history: ArrayLike, learned: Sequence[int | None]) -> float:
    """Return the mean over classes of (best - final accuracy).

    `history` (sessions, classes) float has the accuracy of each class after each session. `learned`
    has the session (row) that first taught each class, or None. The best accuracy counts from that
    session on and may be the final one, so the result is never negative. Classes first taught in
    the last session had no time to be forgotten; these and untested classes (NaN) are left out. The
    result is 0 if no class is left.
    """
    table = np.asarray(history, np.float64)
    if table.ndim != 2 or not len(table) or table.shape[1] != len(learned):
        raise InputError(
            f"Expected a history of shape (sessions, {len(learned)}), got {table.shape}",
            "give a column for each class",
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
    """Return `{"p50": median, "p95": 95th percentile, "n": count}`, linear between neighbours."""
    numbers = np.asarray(values, np.float64).ravel()
    if not len(numbers):
        raise InputError("Expected at least one measurement, got none", "measure first")
    p50, p95 = np.percentile(numbers, [50, 95])
    return {"p50": float(p50), "p95": float(p95), "n": len(numbers)}


def _pair(predicted: ArrayLike, truth: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    guess, true = np.asarray(predicted), np.asarray(truth)
    if guess.ndim != 1 or guess.shape != true.shape:
        raise InputError(
            f"Expected one predicted label per true one, (N,), got {guess.shape} and {true.shape}",
            "give arrays of one length",
        )
    return guess.astype(np.int64), true.astype(np.int64)
