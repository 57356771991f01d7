"""A policy against aging: the newest sessions of a class have the larger part of its rows."""

from __future__ import annotations

import numpy as np

from lrtflite.replay.policies.policy import Incoming, Indices, Marks, Placement, Stored
from lrtflite.replay.policies.shares import all_slots, equal_shares, keep


def fresh(stored: Stored, incoming: Incoming, rng: np.random.Generator) -> Placement:
    """Keep equally many latents of each class, half of them from its newest session.

    Half of the others are from the session before, and so on; the oldest session has the rest. The
    oldest latents, which have aged most where moments adapt, leave first, but a session that showed
    a class in another light leaves some. A mark is the session of a latent.
    """
    slots = all_slots(stored, incoming)
    born = np.concatenate([stored.marks, np.full(len(incoming), incoming.session, np.int32)])
    kept = [np.zeros(0, np.int64)]
    for slot, share in equal_shares(slots, stored.capacity).items():
        members = rng.permutation(np.flatnonzero(slots == slot))
        kept.append(halves(members, born[members], share))
    return keep(stored, np.concatenate(kept), marks=born)


def halves(members: Indices, born: Marks, count: int) -> Indices:
    """Choose `count` members, half of them from the newest session, half of the rest before it.

    Places that a session cannot fill go to the others, the newest first.
    """
    by_session = [members[born == session] for session in np.unique(born)[::-1]]
    taken = np.zeros(len(by_session), np.int64)
    for each, patterns in enumerate(by_session):
        left = count - int(taken.sum())
        oldest = each == len(by_session) - 1
        taken[each] = min(left if oldest else (left + 1) // 2, len(patterns))
    for each, patterns in enumerate(by_session):
        taken[each] += min(count - int(taken.sum()), len(patterns) - int(taken[each]))
    return np.concatenate([patterns[:n] for patterns, n in zip(by_session, taken)])
