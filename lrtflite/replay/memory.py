"""The replay memory: patterns that a session may replay, in RAM or in the files of a state."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.arguments import whole_number
from lrtflite.errors import InputError
from lrtflite.replay.codecs import CODECS, MAX_PATTERNS, LatentForm, Raw
from lrtflite.replay.policies import (
    POLICIES,
    Incoming,
    Indices,
    Latents,
    Marks,
    Placement,
    SlotArray,
    Stored,
)
from lrtflite.replay.store import Rows

# Facts that the memory keeps about each row; a state has them as `memory/NAME`.
FACTS: Mapping[str, Any] = {"slots": np.int32, "marks": np.int32}
# Bytes of codes that are decoded at a time.
_AT_ONCE = 1 << 20


def check_memory(capacity: int, policy: str, codec: str = "raw") -> int:
    """Return the capacity; raise InputError for a negative one, or an unknown policy or codec."""
    POLICIES.check(policy)
    CODECS.check(codec)
    return whole_number("replay_size", capacity, most=MAX_PATTERNS)


@dataclass(frozen=True)
class Content:
    """The patterns of a memory at one moment. A change makes a new value.

    `facts` has the arrays of FACTS, one number per row; `counter` and `marks` are the policy's.
    """

    rows: Rows
    facts: Mapping[str, NDArray[Any]]
    counter: int = 0

    @classmethod
    def empty(cls, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Content:
        return cls(Rows(shape, dtype), {name: np.empty(0, kind) for name, kind in FACTS.items()})

    def __len__(self) -> int:
        return len(self.rows)

    def select(self, rows: Indices) -> Content:
        """Return these patterns alone, in this order."""
        facts = {name: values[rows] for name, values in self.facts.items()}
        return replace(self, rows=self.rows.select(rows), facts=facts)

    def with_marks(self, marks: NDArray[Any]) -> Content:
        """Return the patterns with these marks, (n,)."""
        return replace(self, facts={**self.facts, "marks": np.asarray(marks, FACTS["marks"])})

    def without_marks(self) -> Content:
        """Return the patterns without what a policy keeps about them."""
        return replace(self.with_marks(np.zeros(len(self))), counter=0)

    def with_rows(
        self, codes: Sequence[NDArray[Any]], rows: Indices, **facts: NDArray[Any]
    ) -> Content:
        """Return the patterns with `codes[k]` in row `rows[k]`, and its facts, 0 if not given."""
        placed = self.rows.with_rows(codes, rows)
        changed = {}
        for name, values in self.facts.items():
            changed[name] = np.empty(len(placed), values.dtype)
            changed[name][: len(values)] = values
            changed[name][rows] = facts.get(name, 0)
        return replace(self, rows=placed, facts=changed)


class ReplayMemory:
    """Up to `capacity` patterns, chosen by a policy and encoded by a codec.

    `content` is a value: to take back a change, put back the content from before it.
    """

    def __init__(
        self, capacity: int, form: LatentForm, *, policy: str = "algorithm1", codec: str = "raw"
    ) -> None:
        self.capacity = capacity = check_memory(capacity, policy, codec)
        self.policy, self.codec = policy, codec
        self._form = form
        self._codec = CODECS[codec](form)
        self.content = Content.empty(self._codec.shape, self._codec.dtype)

    def __len__(self) -> int:
        return len(self.content)

    @property
    def counter(self) -> int:
        """Return the number that the policy keeps from session to session."""
        return self.content.counter

    @property
    def codes(self) -> NDArray[Any]:
        """Read all stored codes, (n, ...), into RAM."""
        return self.content.rows.all()

    @property
    def slots(self) -> SlotArray:
        """Return the class slot of each row, (n,) int32."""
        return self.content.facts["slots"]

    @property
    def marks(self) -> Marks:
        """Return the policy's mark of each row, (n,) int32."""
        return self.content.facts["marks"]

    @property
    def zero(self) -> int:
        """Return the value of a latent that stands for 0."""
        return self._form.zero

    @property
    def nbytes(self) -> int:
        """Return the number of bytes of all codes and facts, on disk or in RAM."""
        facts = sum(values.nbytes for values in self.content.facts.values())
        return int(self.content.rows.nbytes + facts)

    def latents(self, rows: Indices) -> NDArray[Any]:
        """Return the latents of these rows, (k, ...), as `train` takes them."""
        out = np.empty((len(rows), *self._form.shape), self._form.trained)
        self.read(rows, out)
        return out

    def read(self, rows: Indices, out: NDArray[Any]) -> None:
        """Write the latents of these rows into `out` (k, ...)."""
        stored = self.content.rows
        if isinstance(self._codec, Raw) and stored.dtype == out.dtype and out.flags.c_contiguous:
            stored.read(rows, out)
            return
        few = max(1, _AT_ONCE // max(1, math.prod(stored.shape) * stored.dtype.itemsize))
        room = np.empty((min(few, len(rows)), *stored.shape), stored.dtype)
        for start in range(0, len(rows), few):
            part = rows[start : start + few]
            stored.read(part, room[: len(part)])
            self._codec.decode(room, np.arange(len(part)), out[start : start + len(part)])

    def draw(self, count: int, rng: np.random.Generator) -> Indices:
        """Return `count` random rows; none is repeated before each was used once."""
        rounds, rest = divmod(count, len(self))
        drawn: Indices = rng.choice(len(self), rest, replace=False)
        if not rounds:  # in a large memory, a list of all rows would take longer than the draw
            return drawn
        return np.concatenate([np.tile(np.arange(len(self)), rounds), drawn])

    def update(
        self, latents: Latents, slots: SlotArray, *, session: int, rng: np.random.Generator
    ) -> None:
        """Store the patterns of a session that the policy chooses."""
        stored = Stored(
            self.slots, self.marks, self.latents, self.capacity, self.counter, self._form.zero
        )
        placement = POLICIES[self.policy](stored, Incoming(slots, latents, session), rng)
        picks, rows = self._check(placement, len(slots))
        codes = [np.asarray(self._codec.encode(latents[pick])) for pick in picks]
        placed = self.content.with_rows(codes, rows, slots=slots[picks])
        if placement.marks is not None:
            placed = placed.with_marks(placement.marks)
        self.content = replace(placed, counter=placement.counter)

    def forget(self, slot: int) -> None:
        """Drop every pattern of a class; the last rows move into the gaps."""
        gone = np.flatnonzero(self.slots == slot)
        size = len(self) - len(gone)
        order = np.arange(size)
        order[gone[gone < size]] = np.setdiff1d(np.arange(size, len(self)), gone)
        self.content = self.content.select(order)

    def load(self, content: Content) -> None:
        """Replace the content with that of a state, or raise InputError if it is too large."""
        if len(content) > self.capacity:
            raise InputError(
                f"Expected a replay size of at least the {len(content)} patterns in the state, "
                f"got {self.capacity}",
                "give a larger replay_size",
            )
        self.content = content

    def _check(self, placement: Placement, incoming: int) -> tuple[Indices, Indices]:
        """Return picks and rows; raise InputError for gaps, clashes or too many or few marks."""
        picks, rows = (np.asarray(each, np.int64) for each in (placement.picks, placement.rows))
        appended = np.sort(rows[rows >= len(self)])
        fits = (
            picks.shape == rows.shape == (len(rows),)
            and len(np.unique(rows)) == len(rows)
            and ((picks >= 0) & (picks < incoming)).all()
            and ((rows >= 0) & (rows < self.capacity)).all()
            and np.array_equal(appended, np.arange(len(self), len(self) + len(appended)))
            and (placement.marks is None or placement.marks.shape == (len(self) + len(appended),))
        )
        if not fits:
            raise InputError(
                f"Expected the policy {self.policy!r} to place patterns into rows without gaps, "
                f"with no marks or one for each row, got rows {rows[:10].tolist()} of "
                f"{self.capacity}",
                "fix the policy",
            )
        return picks, rows
