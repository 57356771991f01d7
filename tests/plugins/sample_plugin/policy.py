"""A ring: a policy that keeps a counter."""

from __future__ import annotations

import numpy as np

from lrtflite.replay.policies import Incoming, Placement, Stored


def ring(stored: Stored, incoming: Incoming, rng: np.random.Generator) -> Placement:
    """Keep the newest latents; each replaces the one that was written longest ago."""
    count = min(len(incoming), stored.capacity)
    first = stored.counter if len(stored) == stored.capacity else len(stored)
    rows = (first + np.arange(count)) % max(1, stored.capacity)
    picks = np.arange(len(incoming) - count, len(incoming))
    return Placement(picks, rows, counter=first + count)
