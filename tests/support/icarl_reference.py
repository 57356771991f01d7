"""iCaRL with virtual classes, written from the formulas, one pattern at a time.

Rebuffi et al. 2017: Algorithm 1 (nearest mean of exemplars), 4 (herding) and 5 (reduction), with
feature vectors and their means of length 1. Each session opens virtual classes, as in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


def unit(vector: np.ndarray) -> np.ndarray:
    return np.asarray(vector, np.float64) / np.linalg.norm(vector)


def herding_order(vectors: np.ndarray) -> list[int]:
    """Return all indices in the order of Algorithm 4; of equally near ones, the first."""
    mean = vectors.mean(axis=0)
    chosen: list[int] = []
    for k in range(1, len(vectors) + 1):
        errors = {
            index: np.linalg.norm(mean - (vector + vectors[chosen].sum(axis=0)) / k)
            for index, vector in enumerate(vectors)
            if index not in chosen
        }
        nearest = min(errors.values())
        chosen.append(next(index for index, error in errors.items() if error <= nearest + 1e-9))
    return chosen


@dataclass
class Reference:
    """K exemplars in all; `virtual` has a pair (real class, exemplars) for each virtual class."""

    size: int
    virtual: list[tuple[int, list[np.ndarray]]] = field(default_factory=list)

    def learn(self, latents: np.ndarray, labels: list[int]) -> None:
        new = sorted(set(labels))
        share = self.size // (len(self.virtual) + len(new))
        self.virtual = [(label, kept[:share]) for label, kept in self.virtual]
        for label in new:
            own = np.array([unit(x) for x, its in zip(latents, labels) if its == label])
            self.virtual.append((label, [own[row] for row in herding_order(own)[:share]]))

    def answer(self, latent: np.ndarray) -> int:
        distances = [
            np.linalg.norm(unit(latent) - unit(np.mean(kept, axis=0))) for _, kept in self.virtual
        ]
        return self.virtual[int(np.argmin(distances))][0]
