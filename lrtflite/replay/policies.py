"""Policies: which patterns of a session the replay memory keeps, and which ones they replace.

A policy is a function of values that returns a `Placement`; it changes nothing itself. To add one,
write a function of the same shape and register it in `POLICIES`. The first line of its docstring is
its help on the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from lrtflite.table import Table

Indices = NDArray[np.int64]
SlotArray = NDArray[np.int32]
# Of any shape, in the dtype that `extract` gives; a list of them is never joined into one array.
Latents = Union[Sequence[NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True)
class Stored:
    """The memory as a policy sees it.

    `slots` (n,) int32 has the class slot of each row. `latents(rows)` decodes rows, (k, ...): a
    policy that needs no latents costs no decoding. `counter` is a whole number that the policy
    keeps from session to session, 0 in a new memory.
    """

    slots: SlotArray
    latents: Callable[[Indices], NDArray[Any]]
    capacity: int
    counter: int = 0

    def __len__(self) -> int:
        return len(self.slots)


@dataclass(frozen=True)
class Incoming:
    """The patterns of one session: latents, their class slots (m,) int32, the session's number."""

    slots: SlotArray
    latents: Latents
    session: int

    def __len__(self) -> int:
        return len(self.slots)


@dataclass(frozen=True)
class Placement:
    """Incoming pattern `picks[k]` goes into row `rows[k]`; `counter` is kept for the next session.

    Rows at or past the memory's present size are appended.
    """

    picks: Indices
    rows: Indices
    counter: int = 0


Policy = Callable[[Stored, Incoming, np.random.Generator], Placement]


def algorithm1(stored: Stored, incoming: Incoming, rng: np.random.Generator) -> Placement:
    """Replace random latents by random new ones, fewer in each session (the paper's Algorithm 1).

    In session i, h = capacity / i patterns replace h others. A small session cannot fill the memory
    as the paper's first one does, so patterns are appended while there is room.
    """
    room = stored.capacity - len(stored)
    wanted = min(len(incoming), max(stored.capacity // incoming.session, room))
    appended = min(wanted, room)
    replaced = rng.choice(len(stored), wanted - appended, replace=False)
    rows = np.concatenate([np.arange(len(stored), len(stored) + appended), replaced])
    return Placement(rng.permutation(len(incoming))[:wanted], rows.astype(np.int64))


def balanced(stored: Stored, incoming: Incoming, rng: np.random.Generator) -> Placement:
    """Keep the same number of latents of each class, chosen at random (the paper's app).

    A class that brings fewer than its share leaves rows over, which go to the others at random.
    """
    slots = np.concatenate([stored.slots, incoming.slots])
    kept = balanced_choice(slots, stored.capacity, rng)
    picks = np.sort(kept[kept >= len(stored)]) - len(stored)
    leaving = np.setdiff1d(np.arange(len(stored)), kept)
    grown = np.arange(len(stored), len(stored) + len(picks) - len(leaving))
    return Placement(picks, np.concatenate([leaving, grown]).astype(np.int64))


def balanced_choice(slots: SlotArray, count: int, rng: np.random.Generator) -> Indices:
    """Choose at most `count` patterns, as many of each class as of any other where there are."""
    order = rng.permutation(len(slots))
    quota = count // max(1, len(np.unique(slots)))
    # A pattern's rank among those of its class, in random order: ranks below the quota stay.
    rank = np.empty(len(slots), np.int64)
    for slot in np.unique(slots):
        members = order[slots[order] == slot]
        rank[members] = np.arange(len(members))
    within = order[rank[order] < quota]
    over = order[rank[order] >= quota]
    chosen: Indices = np.concatenate([within, over])[:count]
    return chosen


POLICIES: Table[Policy] = Table("policy", {"algorithm1": algorithm1, "balanced": balanced})
