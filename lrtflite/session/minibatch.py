"""Mini-batches of new and replayed latents, as the feeding specifies (the paper's section 5.1)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.bundle.feeding import SESSION_AND_MEMORY, Feeding
from lrtflite.replay.memory import ReplayMemory
from lrtflite.replay.policies import Indices, Latents, SlotArray

Batch = tuple[NDArray[Any], NDArray[np.float32]]
# A mini-batch, and whether its patterns come from the memory.
GatheredBatch = tuple[NDArray[Any], NDArray[np.float32], bool]


@dataclass(frozen=True)
class Patterns:
    """The patterns of a session, and the memory that is replayed with them."""

    latents: Latents
    slots: SlotArray
    memory: ReplayMemory

    def __len__(self) -> int:
        return len(self.slots)

    def counts(self, classes: int) -> NDArray[np.float32]:
        """Return (classes,) float32: patterns of each class in session and memory, each once."""
        every = np.concatenate([self.slots, self.memory.slots])
        return np.bincount(every, minlength=classes).astype(np.float32)


def minibatches(
    patterns: Patterns,
    feeding: Feeding,
    *,
    steps: int,
    classes: int,
    rng: np.random.Generator,
    out: NDArray[Any],
) -> Iterator[Batch]:
    """Yield `steps` pairs of latents (B, ...), in `out`, and one-hot targets (B, classes).

    INVARIANT: row k of the latents belongs to row k of the targets, and every new pattern is used
    once before any is used twice. Every step overwrites the same two arrays. With `repeats` a
    mini-batch is always full; without it, the last places may be empty.
    """
    new, stored = len(patterns), len(patterns.memory)
    composition = feeding.composition(new=new, stored=stored)
    targets = np.empty((feeding.batch_size, classes), np.float32)
    slots = np.empty(feeding.batch_size, np.int32)
    for chosen in _orders(new, composition.new, repeats=feeding.repeats, steps=steps, rng=rng):
        for row, pattern in enumerate(chosen):
            out[row] = patterns.latents[pattern]
            slots[row] = patterns.slots[pattern]
        filled = len(chosen)
        if composition.replayed:
            wanted = composition.replayed if feeding.repeats else min(composition.replayed, stored)
            rows = patterns.memory.draw(wanted, rng)
            last = filled + len(rows)
            patterns.memory.read(rows, out[filled:last])
            slots[filled:last] = patterns.memory.slots[rows]
            filled = last
        yield out, _fill(targets, out, slots[:filled])


def each_once(
    patterns: Patterns, feeding: Feeding, *, classes: int, out: NDArray[Any]
) -> Iterator[GatheredBatch]:
    """Yield the patterns that `gather` sees, each once; the last mini-batch has empty places.

    Patterns of the session come first. No mini-batch has patterns of both session and memory.
    """
    size = feeding.batch_size
    targets = np.empty((size, classes), np.float32)
    for start in range(0, len(patterns), size):
        slots = patterns.slots[start : start + size]
        for row in range(len(slots)):
            out[row] = patterns.latents[start + row]
        yield out, _fill(targets, out, slots), False
    if feeding.gathers == SESSION_AND_MEMORY:
        memory = patterns.memory
        for start in range(0, len(memory), size):
            rows = np.arange(start, min(start + size, len(memory)))
            memory.read(rows, out[: len(rows)])
            yield out, _fill(targets, out, memory.slots[rows]), True


def gather_steps(patterns: Patterns, feeding: Feeding) -> int:
    """Return the number of mini-batches that `each_once` yields."""
    replayed = len(patterns.memory) if feeding.gathers == SESSION_AND_MEMORY else 0
    return sum(math.ceil(count / feeding.batch_size) for count in (len(patterns), replayed))


def _fill(
    targets: NDArray[np.float32], latents: NDArray[Any], slots: SlotArray
) -> NDArray[np.float32]:
    """Write one-hot targets for the first places; clear the others and their latents."""
    targets[:] = 0
    targets[np.arange(len(slots)), slots] = 1
    latents[len(slots) :] = 0
    return targets


def _orders(
    count: int, places: int, *, repeats: bool, steps: int, rng: np.random.Generator
) -> Iterator[Indices]:
    """Yield the new patterns of each mini-batch; the order is shuffled in every round."""
    left: Indices = np.empty(0, np.int64)
    for _ in range(steps):
        if not len(left):
            left = rng.permutation(count)
        while repeats and len(left) < places:
            left = np.concatenate([left, rng.permutation(count)])
        yield left[:places]
        left = left[places:]
