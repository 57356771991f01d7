"""Compare int8 latents with float ones, on the calibration frames."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# Ratio given for latents that are the same, in decibels.
SAME = 999.0


def powers(exact: NDArray[np.float32], found: NDArray[np.float32]) -> Floats:
    """Return (2,): the sum of squares of `exact`, and of the difference."""
    parts = exact, exact - found
    return np.array([np.square(part, dtype=np.float64).sum() for part in parts])


def signal_to_noise(signal: float, noise: float) -> float:
    """Return a ratio of two powers in decibels."""
    return SAME if not noise else 10 * float(np.log10(max(signal, 1e-30) / noise))


def agreement(
    exact: NDArray[np.float32], found: NDArray[np.float32], labels: NDArray[np.int64]
) -> float | None:
    """Return the share of frames for which two nearest-mean classifiers answer the same.

    One classifier learns and answers from the features `exact` (n, F), the other one from `found`.
    Every other frame of a class is learned, the rest are answered. Return None if there are fewer
    than two classes with two frames each.
    """
    learned, asked = _halves(labels)
    if len(np.unique(labels[asked])) < 2:
        return None
    answers = [
        _nearest(_unit_roots(features), labels, learned, asked) for features in (exact, found)
    ]
    return float((answers[0] == answers[1]).mean())


def _halves(labels: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the places of the first, third, ... frame of each class, and of the others."""
    number = np.zeros(len(labels), np.int64)
    for label in np.unique(labels):
        places = np.flatnonzero(labels == label)
        number[places] = np.arange(len(places))
    return np.flatnonzero(number % 2 == 0), np.flatnonzero(number % 2)


def _nearest(
    z: Floats, labels: NDArray[np.int64], learned: NDArray[np.intp], asked: NDArray[np.intp]
) -> NDArray[np.int64]:
    classes = np.unique(labels[asked])
    means = np.stack([z[learned][labels[learned] == each].mean(axis=0) for each in classes])
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    cosines = z[asked] @ (means / np.maximum(lengths, 1e-12)).T
    answers: NDArray[np.int64] = classes[cosines.argmax(axis=1)]
    return answers


def _unit_roots(features: NDArray[np.float32]) -> Floats:
    """Return signed square roots of length 1, as closed-form heads use them."""
    roots = np.sign(features) * np.sqrt(np.abs(features.astype(np.float64)))
    return roots / np.maximum(np.linalg.norm(roots, axis=1, keepdims=True), 1e-12)
