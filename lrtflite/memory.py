"""The replay memory: which latents are kept, and how a session changes them.

The policies are pure: they see class slots and say which patterns of the batch go into which rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lrtflite.arguments import whole_number
from lrtflite.errors import InputError

# Names of its arrays in a state. The latents are read into the memory itself: at some replay layers
# they are hundreds of megabytes.
MEMORY_LATENTS, MEMORY_LABELS = "memory/latents", "memory/labels"

Indices = NDArray[np.int64]
Slots = NDArray[np.int32]  # the class slot of each pattern
# More latents than any memory has; numpy's own limit is reached first at most layers.
MOST_PATTERNS = 100_000_000


@dataclass(frozen=True)
class Placement:
    """`picks[k]`, a pattern of the batch, goes into row `rows[k]` of the memory.

    Rows at or past the memory's present size are appended.
    """

    picks: Indices
    rows: Indices


class Policy(Protocol):
    """Decides which patterns of a session's batch the memory keeps, and what they replace."""

    def __call__(
        self, stored: Slots, batch: Slots, *, capacity: int, session: int, rng: np.random.Generator
    ) -> Placement: ...


def algorithm1(
    stored: Slots, batch: Slots, *, capacity: int, session: int, rng: np.random.Generator
) -> Placement:
    """The paper's Algorithm 1: h = RM / i random patterns replace h random ones.

    A small batch cannot fill the memory as the paper's first one does, so patterns are appended
    while there is room.
    """
    room = capacity - len(stored)
    wanted = min(len(batch), max(capacity // session, room))
    appended = min(wanted, room)
    replaced = rng.choice(len(stored), wanted - appended, replace=False)
    rows = np.concatenate([np.arange(len(stored), len(stored) + appended), replaced])
    return Placement(rng.permutation(len(batch))[:wanted], rows.astype(np.int64))


def balanced(
    stored: Slots, batch: Slots, *, capacity: int, session: int, rng: np.random.Generator
) -> Placement:
    """The paper's app: every class has the same quota; left-over rows are dealt at random.

    A class that brings less than its quota leaves rows over.
    """
    slots = np.concatenate([stored, batch])
    order = rng.permutation(len(slots))
    quota = capacity // max(1, len(np.unique(slots)))
    # A pattern's rank among those of its class, in random order: ranks below the quota stay.
    rank = np.empty(len(slots), np.int64)
    for slot in np.unique(slots):
        members = order[slots[order] == slot]
        rank[members] = np.arange(len(members))
    within = order[rank[order] < quota]
    over = order[rank[order] >= quota]
    kept = np.concatenate([within, over])[:capacity]
    picks = np.sort(kept[kept >= len(stored)]) - len(stored)
    leaving = np.setdiff1d(np.arange(len(stored)), kept)
    grown = np.arange(len(stored), len(stored) + len(picks) - len(leaving))
    return Placement(picks, np.concatenate([leaving, grown]).astype(np.int64))


# Policy by the name that a user types. Each sees the class slots of the stored patterns and of the
# session's batch, the memory's capacity and the number of the session.
POLICIES: dict[str, Policy] = {"algorithm1": algorithm1, "balanced": balanced}


def check_memory(capacity: int, policy: str) -> int:
    """Return the capacity, or raise InputError for one that cannot be, or an unknown policy."""
    if policy not in POLICIES:
        raise InputError(f"Expected a policy of {', '.join(POLICIES)}, got {policy!r}")
    return whole_number("replay_size", capacity, most=MOST_PATTERNS)


class ReplayMemory:
    """Up to `capacity` latents with their class slots, in arrays allocated once."""

    def __init__(
        self,
        capacity: int,
        latent_shape: tuple[int, ...],
        *,
        dtype: DTypeLike = np.float32,
        policy: str = "algorithm1",
    ) -> None:
        self.capacity = capacity = check_memory(capacity, policy)
        self.policy = policy
        try:
            self._latents: NDArray[Any] = np.empty((capacity, *latent_shape), dtype)
        except MemoryError as error:
            raise InputError(
                f"Expected RAM for {capacity} latents, got too little: {error}; "
                "give a smaller replay_size"
            ) from error
        self._labels = np.empty(capacity, np.int32)
        self._size = 0
        # Size, rows, latents and labels from before a change that is not settled yet.
        self._before: tuple[int, Indices, NDArray[Any], NDArray[Any]] | None = None

    def __len__(self) -> int:
        return self._size

    @property
    def latents(self) -> NDArray[Any]:
        """(n, ...): a view of the stored latents."""
        return self._latents[: self._size]

    @property
    def labels(self) -> NDArray[np.int32]:
        """(n,) int32: the class slot of each."""
        return self._labels[: self._size]

    @property
    def nbytes(self) -> int:
        return int(self.latents.nbytes + self.labels.nbytes)

    def sample(
        self, count: int, *, out: NDArray[Any], rng: np.random.Generator
    ) -> NDArray[np.int32]:
        """Draw `count` patterns into `out`, none twice before all came once; returns the labels."""
        rounds, rest = divmod(count, self._size)
        rows = np.concatenate(
            [np.tile(np.arange(self._size), rounds), rng.choice(self._size, rest, replace=False)]
        )
        np.take(self._latents, rows, axis=0, out=out, mode="clip")
        labels: NDArray[np.int32] = self._labels[rows]
        return labels

    def update(
        self,
        latents: Sequence[NDArray[Any]] | NDArray[Any],
        labels: NDArray[np.int32],
        *,
        session: int,
        rng: np.random.Generator,
    ) -> None:
        """Take in patterns of a session's batch, as the policy says."""
        placement = POLICIES[self.policy](
            self.labels, labels, capacity=self.capacity, session=session, rng=rng
        )
        self._remember(placement.rows[placement.rows < self._size])
        for pick, row in zip(placement.picks, placement.rows):
            self._latents[row] = latents[pick]
        self._labels[placement.rows] = labels[placement.picks]
        self._size = max(self._size, int(placement.rows.max(initial=-1)) + 1)

    def settle(self) -> None:
        """What was changed is committed."""
        self._before = None

    def revert(self) -> None:
        """Take the last update or forget back, unless it is settled."""
        if self._before is not None:
            self._size, rows, latents, labels = self._before
            self._latents[rows], self._labels[rows] = latents, labels
            self._before = None

    def forget(self, label: int) -> None:
        """Drop every pattern of a class; the last ones move into the gaps.

        Past the new size nothing is overwritten, so the gaps are all that `revert` needs.
        """
        gone = np.flatnonzero(self.labels == label)
        size = self._size - len(gone)
        gaps = gone[gone < size]
        last = np.setdiff1d(np.arange(size, self._size), gone)
        self._remember(gaps)
        for gap, row in zip(gaps, last):
            self._latents[gap] = self._latents[row]
        self._labels[gaps] = self._labels[last]
        self._size = size

    def load(self, labels: NDArray[Any], read_latents: Callable[[NDArray[Any]], None]) -> None:
        """Replace the content by what a state holds.

        `read_latents` fills the (n, ...) array that it is given, a view of the memory itself: a
        large memory must not be in RAM twice.
        """
        if len(labels) > self.capacity:
            raise InputError(
                f"Expected a replay size of at least the {len(labels)} patterns in the state, "
                f"got {self.capacity}"
            )
        self._before = None
        self._size = 0  # should reading fail, then without latents of two states mixed
        read_latents(self._latents[: len(labels)])
        self._labels[: len(labels)] = labels
        self._size = len(labels)

    def _remember(self, rows: Indices) -> None:
        """Keep what is about to be overwritten, for `revert`."""
        self._before = (self._size, rows, self._latents[rows], self._labels[rows])
