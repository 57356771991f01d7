"""Policies: rules that decide which patterns the replay memory keeps, and which they replace.

A policy is a function that returns a `Placement` and changes nothing itself. To add one, write a
function with the same parameters and register it in `POLICIES`. The first line of its docstring is
its help text on the command line.
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
# Latents of any shape, in the dtype from `extract`. A list is never joined into one array.
Latents = Union[Sequence[NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True)
class Stored:
    """The memory as a policy sees it.

    `slots` (n,) int32 has the class slot of each row. `latents(rows)` decodes rows, (k, ...), only
    for policies that need latents. `counter` is a whole number that the policy keeps from session
    to session; it is 0 in a new memory.
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

    Rows at or past the current size of the memory are appended.
    """

    picks: Indices
    rows: Indices
    counter: int = 0


Policy = Callable[[Stored, Incoming, np.random.Generator], Placement]


def algorithm1(stored: Stored, incoming: Incoming, rng: np.random.Generator) -> Placement:
    """Replace random latents with random new ones, fewer in each session (the paper's Algorithm 1).

    In session i, h = capacity / i patterns replace h others. A small session does not fill the
    memory as the paper's first one does, so patterns are appended while there is room.
    """
    room = stored.capacity - len(stored)
    wanted = min(len(incoming), max(stored.capacity // incoming.session, room))
    appended = min(wanted, room)
    replaced = rng.choice(len(stored), wanted - appended, replace=False)
    rows = np.concatenate([np.arange(len(stored), len(stored) + appended), replaced])
    return Placement(rng.permutation(len(incoming))[:wanted], rows.astype(np.int64))


def balanced(stored: Stored, incoming: Incoming, rng: np.random.Generator) -> Placement:
    """Keep the same number of latents of each class, chosen at random (the paper's app).

    Rows left over by a class with fewer patterns than its share go to the others at random.
    """
    slots = np.concatenate([stored.slots, incoming.slots])
    kept = balanced_choice(slots, stored.capacity, rng)
    picks = np.sort(kept[kept >= len(stored)]) - len(stored)
    leaving = np.setdiff1d(np.arange(len(stored)), kept)
    grown = np.arange(len(stored), len(stored) + len(picks) - len(leaving))
    return Placement(picks, np.concatenate([leaving, grown]).astype(np.int64))


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


POLICIES: Table[Policy] = Table("policy", {"algorithm1": algorithm1, "balanced": balanced})
