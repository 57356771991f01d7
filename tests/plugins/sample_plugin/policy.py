"""Reservoir sampling: a policy that keeps a counter."""

from __future__ import annotations

import numpy as np

from lrtflite.replay.policies import Incoming, Placement, Stored


def reservoir(stored: Stored, incoming: Incoming, rng: np.random.Generator) -> Placement:
    """Keep each latent seen so far with the same probability."""
    row_of: dict[int, int] = {}
    size = len(stored)
    for pick in range(len(incoming)):
        seen = stored.counter + pick
        row = size if size < stored.capacity else int(rng.integers(0, seen + 1))
        if row < stored.capacity:
            row_of[row] = pick
            size = max(size, row + 1)
    return Placement(
        np.array(list(row_of.values()), np.int64),
        np.array(list(row_of), np.int64),
        counter=stored.counter + len(incoming),
    )
