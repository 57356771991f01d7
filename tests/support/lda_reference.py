"""The closed-form head in plain float64 numpy, from sums: the oracle of several tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def transformed(latents: Array) -> Array:
    """(n, F): signed square roots, each row of length 1."""
    root = np.sign(latents) * np.sqrt(np.abs(latents.astype(float)))
    return root / np.linalg.norm(root, axis=1, keepdims=True)


class LdaReference:
    """G = sum of z z^T, S = sum of z per class, n = patterns per class, N = patterns in G."""

    def __init__(self, slots: int, features: int) -> None:
        self.scatter = np.zeros((features, features))
        self.sums = np.zeros((slots, features))
        self.counts = np.zeros(slots)
        self.patterns = 0

    def gather(self, latents: Array, slots: Array) -> None:
        for z, slot in zip(transformed(latents), slots):
            self.scatter += np.outer(z, z)
            self.sums[slot] += z
            self.counts[slot] += 1
            self.patterns += 1

    def forget(self, slot: int) -> None:
        self.scatter -= np.outer(self.sums[slot], self.sums[slot]) / self.counts[slot]
        self.sums[slot] = 0
        self.counts[slot] = 0

    @property
    def known(self) -> Array:
        return np.flatnonzero(self.counts)

    def covariance(self) -> Array:
        """(F, F): within classes, shrunk towards its mean variance by F / (F + N)."""
        within = self.scatter.copy()
        for slot in self.known:
            within -= np.outer(self.sums[slot], self.sums[slot]) / self.counts[slot]
        within /= self.patterns
        features = len(within)
        e = features / (features + self.patterns)
        return (1 - e) * within + e * np.trace(within) / features * np.eye(features)

    def scores(self, latents: Array) -> Array:
        """(n, known): z . w_c - mean_c . w_c / 2 of the classes with patterns, in slot order."""
        means = self.sums[self.known] / self.counts[self.known, np.newaxis]
        weights = np.linalg.solve(self.covariance(), means.T).T
        return transformed(latents) @ weights.T - 0.5 * (means * weights).sum(axis=1)


def differences(scores: Array) -> Array:
    """Scores less their mean over the classes: what is common to all does not matter."""
    centred: Array = scores - scores.mean(axis=1, keepdims=True)
    return centred


def far_apart(found: Array, expected: Array) -> float:
    """The largest difference between scores, relative to the range of the expected ones."""
    one, other = differences(found), differences(expected)
    return float(np.abs(one - other).max() / np.ptp(other))
