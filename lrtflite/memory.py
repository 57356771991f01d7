"""The replay memory: which latents are kept, and how a session changes them.

The policies are pure: they see labels and say which patterns of the batch go into which slots.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lrtflite.errors import InputError
from lrtflite.manifest import POLICIES

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Placement:
    """`picks[k]`, a pattern of the batch, goes into slot `slots[k]` of the memory.

    Slots at or past the memory's present size are appended.
    """

    picks: Indices
    slots: Indices


def algorithm1(
    *, stored: int, capacity: int, batch: int, session: int, rng: np.random.Generator
) -> Placement:
    """The paper's Algorithm 1: h = RM / i random patterns replace h random ones.

    A small batch cannot fill the memory as the paper's first one does, so patterns are appended
    while there is room.
    """
    room = capacity - stored
    wanted = min(batch, max(capacity // session, room))
    appended = min(wanted, room)
    replaced = rng.choice(stored, wanted - appended, replace=False)
    slots = np.concatenate([np.arange(stored, stored + appended), replaced])
    return Placement(rng.permutation(batch)[:wanted], slots.astype(np.int64))


def balanced(
    *,
    stored: NDArray[np.int32],
    capacity: int,
    batch: NDArray[np.int32],
    rng: np.random.Generator,
) -> Placement:
    """The paper's app: every class has the same quota; left-over slots are dealt at random.

    `stored` and `batch` are labels. A class that brings less than its quota leaves slots over.
    """
    labels = np.concatenate([stored, batch])
    order = rng.permutation(len(labels))
    quota = capacity // max(1, len(np.unique(labels)))
    # A pattern's rank among those of its class, in random order: ranks below the quota stay.
    rank = np.empty(len(labels), np.int64)
    for label in np.unique(labels):
        members = order[labels[order] == label]
        rank[members] = np.arange(len(members))
    within = order[rank[order] < quota]
    over = order[rank[order] >= quota]
    kept = np.concatenate([within, over])[:capacity]
    picks = np.sort(kept[kept >= len(stored)]) - len(stored)
    leaving = np.setdiff1d(np.arange(len(stored)), kept)
    grown = np.arange(len(stored), len(stored) + len(picks) - len(leaving))
    return Placement(picks, np.concatenate([leaving, grown]).astype(np.int64))


def check_memory(capacity: int, policy: str) -> None:
    """Refuse a memory that cannot be."""
    if capacity < 0:
        raise InputError(f"Expected a replay memory of 0 or more patterns, got {capacity}")
    if policy not in POLICIES:
        raise InputError(f"Expected a policy of {', '.join(POLICIES)}, got {policy!r}")


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
        check_memory(capacity, policy)
        self.capacity = capacity
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
        # Size, slots, latents and labels from before a change that is not settled yet.
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
        if self.policy == "balanced":
            placement = balanced(stored=self.labels, capacity=self.capacity, batch=labels, rng=rng)
        else:
            placement = algorithm1(
                stored=self._size,
                capacity=self.capacity,
                batch=len(labels),
                session=session,
                rng=rng,
            )
        self._remember(placement.slots[placement.slots < self._size])
        for pick, slot in zip(placement.picks, placement.slots):
            self._latents[slot] = latents[pick]
        self._labels[placement.slots] = labels[placement.picks]
        self._size = max(self._size, int(placement.slots.max(initial=-1)) + 1)

    def settle(self) -> None:
        """What was changed is committed."""
        self._before = None

    def revert(self) -> None:
        """Take the last update or forget back, unless it is settled."""
        if self._before is not None:
            self._size, slots, latents, labels = self._before
            self._latents[slots], self._labels[slots] = latents, labels
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

    def _remember(self, slots: Indices) -> None:
        """Keep what is about to be overwritten, for `revert`."""
        self._before = (self._size, slots, self._latents[slots], self._labels[slots])
