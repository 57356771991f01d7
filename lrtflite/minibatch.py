"""Mini-batches of new and replayed latents in proportion (the paper's section 5.1)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from lrtflite.manifest import Training
from lrtflite.memory import ReplayMemory

# Of any shape and of the bundle's dtype; a list of them is never joined into one large array.
Latents = Union[Sequence[NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True)
class Composition:
    """How many patterns of a mini-batch are new and how many are replayed."""

    new: int
    replayed: int

    @classmethod
    def of(cls, *, batch_size: int, new_per_batch: int, new: int, stored: int) -> Composition:
        """The share that `new` patterns have beside `stored` ones, up to `new_per_batch`.

        In proportion, every pattern is seen as often as any other: the paper's 300 new and 1500
        stored are 21 + 107. Given more room, a short session would teach the head that hardly
        anything but its class exists; hence the limit, too, while the memory is small. Something is
        replayed unless the memory is empty, or a mini-batch has one place only.
        """
        if not stored:
            return cls(batch_size, 0)
        share = round(batch_size * new / (new + stored))
        taken = min(max(share, 1), new_per_batch, max(batch_size - 1, 1))
        return cls(taken, batch_size - taken)

    def steps_per_epoch(self, patterns: int) -> int:
        return math.ceil(patterns / self.new)

    def steps(self, patterns: int, training: Training) -> int:
        """Return how many mini-batches a session of so many new patterns takes."""
        return max(self.steps_per_epoch(patterns) * training.epochs, training.least_steps)


def minibatches(
    latents: Latents,
    labels: NDArray[np.int32],
    memory: ReplayMemory,
    *,
    composition: Composition,
    steps: int,
    slots: int,
    rng: np.random.Generator,
    out: NDArray[Any] | None = None,
) -> Iterator[tuple[NDArray[Any], NDArray[np.float32]]]:
    """Yield `steps` pairs of (B, ...) latents, of their own dtype, and (B, slots) one-hot targets.

    INVARIANT: a mini-batch is always full, row k of the latents belongs to row k of the targets,
    and every new pattern is used once before any is used twice. The arrays are the same ones at
    every step, overwritten in place; `out`, if given, is the one for the latents.
    """
    size = composition.new + composition.replayed
    batch = np.empty((size, *latents[0].shape), latents[0].dtype) if out is None else out
    targets = np.empty((size, slots), np.float32)
    batch_labels = np.empty(size, np.int32)
    order = _endless_shuffles(len(labels), rng)
    for _ in range(steps):
        for row in range(composition.new):
            pattern = next(order)
            batch[row] = latents[pattern]
            batch_labels[row] = labels[pattern]
        if composition.replayed:
            replayed = slice(composition.new, size)
            batch_labels[replayed] = memory.sample(
                composition.replayed, out=batch[replayed], rng=rng
            )
        targets[:] = 0
        targets[np.arange(size), batch_labels] = 1
        yield batch, targets


def _endless_shuffles(count: int, rng: np.random.Generator) -> Iterator[int]:
    while True:
        yield from rng.permutation(count).tolist()
