"""The replay memory: patterns that a session may replay; a change is kept or reverted as one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.arguments import whole_number
from lrtflite.errors import InputError
from lrtflite.replay.codecs import CODECS, LatentForm
from lrtflite.replay.policies import (
    POLICIES,
    Incoming,
    Indices,
    Latents,
    Placement,
    SlotArray,
    Stored,
)
from lrtflite.replay.store import RamStore

# Names of the memory's arrays in a state. Codes are read straight into the memory, because they are
# hundreds of megabytes at some replay layers.
MEMORY_CODES, MEMORY_SLOTS = "memory/codes", "memory/slots"
# Maximum number of latents in any memory; at most layers, RAM runs out first.
MOST_PATTERNS = 100_000_000


def check_memory(capacity: int, policy: str, codec: str = "raw") -> int:
    """Return the capacity; raise InputError for a negative one, or an unknown policy or codec."""
    POLICIES.check(policy)
    CODECS.check(codec)
    return whole_number("replay_size", capacity, most=MOST_PATTERNS)


@dataclass(frozen=True)
class _Before:
    """The overwritten part of the memory, to revert a change that is not committed yet."""

    size: int
    counter: int
    rows: Indices
    codes: NDArray[Any]
    slots: SlotArray


class ReplayMemory:
    """Up to `capacity` patterns, chosen by a policy and encoded by a codec.

    `counter` is a number that the policy keeps from session to session.
    """

    def __init__(
        self, capacity: int, form: LatentForm, *, policy: str = "algorithm1", codec: str = "raw"
    ) -> None:
        self.capacity = capacity = check_memory(capacity, policy, codec)
        self.policy, self.codec = policy, codec
        self.counter = 0
        self._form = form
        self._codec = CODECS[codec](form)
        self._store = RamStore(capacity, self._codec.shape, self._codec.dtype)
        self._before: _Before | None = None

    def __len__(self) -> int:
        return len(self._store)

    @property
    def codes(self) -> NDArray[Any]:
        """Return a view of the stored codes, (n, ...)."""
        return self._store.codes

    @property
    def slots(self) -> SlotArray:
        """Return the class slot of each row, (n,) int32."""
        return self._store.slots

    @property
    def nbytes(self) -> int:
        return int(self.codes.nbytes + self.slots.nbytes)

    def latents(self, rows: Indices) -> NDArray[Any]:
        """Return the latents of these rows, (k, ...), as `train` takes them."""
        out = np.empty((len(rows), *self._form.shape), self._form.trained)
        self.read(rows, out)
        return out

    def read(self, rows: Indices, out: NDArray[Any]) -> None:
        """Write the latents of these rows into `out` (k, ...)."""
        self._codec.decode(self._store.codes, rows, out)

    def draw(self, count: int, rng: np.random.Generator) -> Indices:
        """Return `count` random rows; none is repeated before each was used once."""
        rounds, rest = divmod(count, len(self))
        return np.concatenate(
            [np.tile(np.arange(len(self)), rounds), rng.choice(len(self), rest, replace=False)]
        )

    def update(
        self, latents: Latents, slots: SlotArray, *, session: int, rng: np.random.Generator
    ) -> None:
        """Store the patterns of a session that the policy chooses."""
        stored = Stored(self.slots, self.latents, self.capacity, self.counter)
        placement = POLICIES[self.policy](stored, Incoming(slots, latents, session), rng)
        size = len(self)
        picks, rows = self._check(placement, len(slots))
        self._remember(rows[rows < size])
        self._store.resize(max(size, int(rows.max(initial=-1)) + 1))
        codes = self._store.codes
        for pick, row in zip(picks, rows):
            codes[row] = self._codec.encode(latents[pick])
        self._store.slots[rows] = slots[picks]
        self.counter = placement.counter

    def settle(self) -> None:
        """Accept the last change, which is committed now."""
        self._before = None

    def revert(self) -> None:
        """Revert the last `update` or `forget`, unless it is settled."""
        before = self._before
        if before is not None:
            self._store.resize(before.size)
            self._store.codes[before.rows] = before.codes
            self._store.slots[before.rows] = before.slots
            self.counter = before.counter
            self._before = None

    def forget(self, slot: int) -> None:
        """Drop every pattern of a class; the last rows move into the gaps.

        Nothing past the new size is overwritten, so `revert` needs only the gaps.
        """
        gone = np.flatnonzero(self.slots == slot)
        size = len(self) - len(gone)
        gaps = gone[gone < size]
        last = np.setdiff1d(np.arange(size, len(self)), gone)
        self._remember(gaps)
        codes, slots = self._store.codes, self._store.slots
        for gap, row in zip(gaps, last):
            codes[gap] = codes[row]
        slots[gaps] = slots[last]
        self._store.resize(size)

    def load(
        self, slots: NDArray[Any], read_codes: Callable[[NDArray[Any]], None], *, counter: int = 0
    ) -> None:
        """Replace the content with that of a state.

        `read_codes` gets a view of the memory, (n, ...), and fills it, so that a large memory is
        never in RAM twice.
        """
        if len(slots) > self.capacity:
            raise InputError(
                f"Expected a replay size of at least the {len(slots)} patterns in the state, "
                f"got {self.capacity}; give a larger replay_size"
            )
        self._before = None
        try:
            self._store.resize(len(slots))
            read_codes(self._store.codes)
            self._store.slots[:] = slots
        except BaseException:
            self._store.resize(0)  # better no latents than a mixture of two states
            raise
        self.counter = counter

    def _check(self, placement: Placement, incoming: int) -> tuple[Indices, Indices]:
        """Return picks and rows; raise InputError for a placement with gaps or clashes."""
        picks, rows = (np.asarray(each, np.int64) for each in (placement.picks, placement.rows))
        appended = np.sort(rows[rows >= len(self)])
        fits = (
            picks.shape == rows.shape == (len(rows),)
            and len(np.unique(rows)) == len(rows)
            and ((picks >= 0) & (picks < incoming)).all()
            and ((rows >= 0) & (rows < self.capacity)).all()
            and np.array_equal(appended, np.arange(len(self), len(self) + len(appended)))
        )
        if not fits:
            raise InputError(
                f"Expected the policy {self.policy!r} to place patterns into rows without gaps, "
                f"got rows {rows[:10].tolist()} of {self.capacity}; fix the policy"
            )
        return picks, rows

    def _remember(self, rows: Indices) -> None:
        """Copy the rows that are about to be overwritten, for `revert`."""
        codes, slots = self._store.codes[rows], self._store.slots[rows]
        self._before = _Before(len(self), self.counter, rows, codes, slots)
