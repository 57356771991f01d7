"""Reservoir sampling: a uniform sample of all patterns that were ever taught."""

from __future__ import annotations

import numpy as np

from lrtflite.replay.policies.policy import Incoming, Placement, Stored


def reservoir(stored: Stored, incoming: Incoming, rng: np.random.Generator) -> Placement:
    """Keep each latent seen so far with the same probability (reservoir sampling).

    The n-th pattern takes a random row with probability capacity / n; `counter` is n. Patterns of
    unknown number, from another policy or a merged memory, count as the rows that they take. Rows
    that `forget` freed are filled with the next patterns.
    """
    seen = max(stored.counter, len(stored))
    size = len(stored)
    pick_of: dict[int, int] = {}
    for pick in range(len(incoming)):
        seen += 1
        row = size if size < stored.capacity else int(rng.integers(seen))
        if row < stored.capacity:
            pick_of[row] = pick
            size = max(size, row + 1)
    picks, rows = (np.array(list(each), np.int64) for each in (pick_of.values(), pick_of))
    return Placement(picks, rows, counter=seen)
