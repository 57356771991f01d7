"""Herding: choose a few patterns whose mean stays close to the mean of all."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]
# Largest difference of squared distances that counts as a tie, relative to the longest latent's
# squared length. Two latents are always equally far from their mean, and rounding must not decide.
TIE = 1e-9


def herd(latents: NDArray[Any], count: int) -> Indices:
    """Return the indices of at most `count` of the latents (n, F), the most telling first.

    This is Algorithm 4 of iCaRL (Rebuffi et al., CVPR 2017). With mu the mean of all latents, the
    k-th choice is the latent x, among those not chosen yet, that minimises
    |mu - (x + sum of the chosen) / k|. INVARIANT: a shorter choice is the beginning of a longer
    one, so a memory shrinks by dropping the end. The lower index wins a tie. The function compares
    latents as they are; iCaRL scales them to length 1 first.
    """
    if not len(latents):
        return np.empty(0, np.int64)
    points = np.asarray(latents, np.float64).reshape(len(latents), -1)
    return herd_products(points @ points.T, count)


def herd_products(gram: NDArray[np.float64], count: int) -> Indices:
    """Do the same from the inner products (n, n) of the latents.

    The k-th choice maximises x . (k mu - sum of the chosen) - |x|^2 / 2.
    """
    to_mean, own = gram.mean(axis=1), gram.diagonal() / 2
    tie = TIE * gram.diagonal().max(initial=0.0) / 2
    to_chosen = np.zeros(len(gram))
    free = np.ones(len(gram), bool)
    chosen = np.zeros(min(count, len(gram)), np.int64)
    for k in range(len(chosen)):
        gain = np.where(free, (k + 1) * to_mean - to_chosen - own, -np.inf)
        chosen[k] = best = int(np.flatnonzero(gain >= gain.max() - tie)[0])
        free[best] = False
        to_chosen += gram[best]
    return chosen
