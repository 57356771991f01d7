"""Familiarity in numpy, from the taught patterns themselves."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from lda_reference import transformed

Values = NDArray[np.float64]


def unit(x: Values) -> Values:
    return np.asarray(x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-12))


def own_cosine(z: Values) -> float:
    """Mean cosine of patterns with the sum of the others; the mean length stands for each."""
    rest = z.sum(axis=0) - z
    return float((z * rest).sum(axis=1).mean() / np.sqrt((rest**2).sum(axis=1).mean()))


def places(
    taught: Mapping[int, NDArray[np.float32]],
    probe: NDArray[np.float32],
    answers: NDArray[np.intp],
    weights: Values | None = None,
) -> Values:
    """Return familiarity (n,): the mean of the three places between other classes and the own."""
    means = {slot: transformed(latents).mean(axis=0) for slot, latents in taught.items()}
    found = []
    for z, slot in zip(transformed(probe), answers):
        mean = means[slot]
        others = np.mean([each for other, each in means.items() if other != slot], axis=0)
        along = mean - others if weights is None else weights[slot]
        way = (z - others) @ along / ((mean - others) @ along)
        direction, own = unit(mean), own_cosine(transformed(taught[slot]))
        low = others @ direction
        near = (z @ direction - low) / max(own - low, 0.25 * (1 - low))
        angle = unit(z - others) @ unit(mean - others)
        found.append((np.clip(way, -1, 2) + near + angle) / 3)
    return np.clip(found, 0, 1)
