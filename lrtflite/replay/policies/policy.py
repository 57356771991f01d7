"""The seam of a policy: the memory as it sees it, the session's patterns, and its answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]
SlotArray = NDArray[np.int32]
Marks = NDArray[np.int32]
# Latents of any shape, in the dtype from `extract`. A list is never joined into one array.
Latents = Union[Sequence[NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True)
class Stored:
    """The memory as a policy sees it.

    `slots` (n,) int32 has the class slot of each row. `latents(rows)` decodes rows, (k, ...), only
    for policies that need latents. `counter` is a whole number that the policy keeps from session
    to session, and `marks` (n,) int32 has one for each row. Both are 0 in a new memory and in one
    that another policy filled. `zero` is the value of a latent that stands for 0.
    """

    slots: SlotArray
    marks: Marks
    latents: Callable[[Indices], NDArray[Any]]
    capacity: int
    counter: int = 0
    zero: int = 0

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

    Rows at or past the current size of the memory are appended. `marks` (n,) int32 has the new mark
    of every row after that; None gives the rows in `rows` the mark 0 and keeps the others.
    """

    picks: Indices
    rows: Indices
    counter: int = 0
    marks: Marks | None = None


Policy = Callable[[Stored, Incoming, np.random.Generator], Placement]
