"""The policy of the paper's app: random latents, with the same number from each class."""

from __future__ import annotations

import numpy as np

from lrtflite.replay.policies.policy import Incoming, Indices, Placement, SlotArray, Stored
from lrtflite.replay.policies.shares import all_slots, keep


def balanced(stored: Stored, incoming: Incoming, rng: np.random.Generator) -> Placement:
    """Keep the same number of latents of each class, chosen at random (the paper's app).

    Rows left over by a class with fewer patterns than its share go to the others at random.
    """
    return keep(stored, balanced_choice(all_slots(stored, incoming), stored.capacity, rng))


def balanced_choice(slots: SlotArray, count: int, rng: np.random.Generator) -> Indices:
    """Choose at most `count` patterns at random, with equal shares for all classes if possible."""
    order = rng.permutation(len(slots))
    quota = count // max(1, len(np.unique(slots)))
    # Random rank of each pattern within its class; patterns ranked below the quota stay.
    rank = np.empty(len(slots), np.int64)
    for slot in np.unique(slots):
        members = order[slots[order] == slot]
        rank[members] = np.arange(len(members))
    within = order[rank[order] < quota]
    over = order[rank[order] >= quota]
    chosen: Indices = np.concatenate([within, over])[:count]
    return chosen
