"""Class shares of policies: the shares, and the placement of the patterns that stay.

A pattern is counted here from 0 to len(stored) + len(incoming): the rows first, then the session.
"""

from __future__ import annotations

import numpy as np

from lrtflite.replay.policies.policy import (
    Incoming,
    Indices,
    Marks,
    Placement,
    SlotArray,
    Stored,
)


def all_slots(stored: Stored, incoming: Incoming) -> SlotArray:
    """Return the class slot of each row and of each pattern of the session."""
    return np.concatenate([stored.slots, incoming.slots])


def equal_shares(slots: SlotArray, capacity: int) -> dict[int, int]:
    """Return how many patterns of each class stay: as equal as possible, `capacity` in total.

    What a class lacks goes to the others. A remainder goes to the lowest slots that can use it.
    """
    present, available = np.unique(slots, return_counts=True)
    shares = np.zeros(len(present), np.int64)
    left = min(capacity, len(slots))
    while left:
        hungry = np.flatnonzero(shares < available)
        more = max(1, left // len(hungry))
        for each in hungry:
            given = min(more, left, available[each] - shares[each])
            shares[each] += given
            left -= given
    return dict(zip(present.tolist(), shares.tolist()))


def keep(stored: Stored, kept: Indices, *, marks: Marks | None = None) -> Placement:
    """Return the placement after which the memory holds the patterns `kept`.

    `kept` needs at least as many patterns as there are rows, because a placement removes none.
    `marks` has a mark for each pattern, kept or not.
    """
    size = len(stored)
    picks = np.sort(kept[kept >= size]) - size
    leaving = np.setdiff1d(np.arange(size), kept)
    rows = np.concatenate([leaving, np.arange(size, size + len(picks) - len(leaving))])
    if marks is None:
        return Placement(picks, rows)
    after = np.concatenate([marks[:size], np.zeros(len(picks) - len(leaving), np.int32)])
    after[rows] = marks[size + picks]
    return Placement(picks, rows, marks=after)
