"""The replay memory: which latents are kept, and how a session changes them.

The policies are pure: they see labels and say which patterns of the batch go into which slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


class ReplayMemory:
    """Up to `capacity` latents with their class slots, in arrays allocated once."""

    def __init__(
        self, capacity: int, latent_shape: tuple[int, ...], *, policy: str = "algorithm1"
    ) -> None:
        if capacity < 0:
            raise InputError(f"Expected a replay memory of 0 or more patterns, got {capacity}")
        if policy not in POLICIES:
            raise InputError(f"Expected a policy of {', '.join(POLICIES)}, got {policy!r}")
        self.capacity = capacity
        self.policy = policy
        self._latents = np.empty((capacity, *latent_shape), np.float32)
        self._labels = np.empty(capacity, np.int32)
        self._size = 0
        # Size, slots, latents and labels from before an update that is not settled yet.
        self._before: tuple[int, Indices, NDArray[Any], NDArray[Any]] | None = None

    def __len__(self) -> int:
        return self._size

    @property
    def latents(self) -> NDArray[np.float32]:
        """(n, ...) float32: a view of the stored latents."""
        return self._latents[: self._size]

    @property
    def labels(self) -> NDArray[np.int32]:
        """(n,) int32: the class slot of each."""
        return self._labels[: self._size]

    @property
    def nbytes(self) -> int:
        return int(self.latents.nbytes + self.labels.nbytes)

    def sample(
        self, count: int, *, out: NDArray[np.float32], rng: np.random.Generator
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
        latents: Sequence[NDArray[np.float32]] | NDArray[np.float32],
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
        replaced = placement.slots[placement.slots < self._size]
        self._before = (
            self._size,
            replaced,
            self._latents[replaced].copy(),
            self._labels[replaced].copy(),
        )
        for pick, slot in zip(placement.picks, placement.slots):
            self._latents[slot] = latents[pick]
        self._labels[placement.slots] = labels[placement.picks]
        self._size = max(self._size, int(placement.slots.max(initial=-1)) + 1)

    def settle(self) -> None:
        """What was changed is committed."""
        self._before = None

    def revert(self) -> None:
        """Take the last update back, unless it is settled."""
        if self._before is not None:
            self._size, slots, latents, labels = self._before
            self._latents[slots], self._labels[slots] = latents, labels
            self._before = None

    def forget(self, label: int) -> None:
        """Drop every pattern of a class."""
        kept = np.flatnonzero(self.labels != label)
        self._latents[: len(kept)] = self._latents[kept]
        self._labels[: len(kept)] = self._labels[kept]
        self._size = len(kept)

    def load(self, latents: NDArray[Any], labels: NDArray[Any]) -> None:
        """Replace the content by what a state holds."""
        if len(latents) > self.capacity:
            raise InputError(
                f"Expected a replay size of at least the {len(latents)} patterns in the state, "
                f"got {self.capacity}"
            )
        self._before = None
        self._size = len(latents)
        self._latents[: self._size] = latents
        self._labels[: self._size] = labels
