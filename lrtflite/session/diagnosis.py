"""Explain why a session went wrong, from latents and answers alone, for any head."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.replay.memory import ReplayMemory
from lrtflite.replay.policies import Latents, SlotArray

# From latents (n, ...) to probabilities (n, C).
Answer = Callable[[NDArray[Any]], NDArray[np.float32]]
# Number of known classes listed as the nearest to a new one.
NEAREST = 3


@dataclass(frozen=True)
class Disagreement:
    """Frames of a label that are more like another class than like the label's other frames.

    `frames` are their positions in the session; `of` is the label's number of frames there.
    """

    label: str
    looks_like: str
    frames: tuple[int, ...]
    of: int


@dataclass(frozen=True)
class Neighbour:
    """A known class near a new one; `cosine` is between their means."""

    label: str
    known: str
    cosine: float


@dataclass(frozen=True)
class Loss:
    """Stored patterns of a class that only the old answers got right, out of `of` stored ones."""

    label: str
    patterns: int
    of: int


@dataclass(frozen=True)
class Diagnosis:
    """The likely reasons for wrong answers after a session, the most serious first in each list."""

    disagreements: tuple[Disagreement, ...] = ()
    nearest: tuple[Neighbour, ...] = ()
    lost: tuple[Loss, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the lines to show to a user: disagreements, then losses; often none."""
        return (
            *(
                f"{len(each.frames)} of {each.of} frames of {each.label} look like "
                f"{each.looks_like}"
                for each in self.disagreements
            ),
            *(
                f"{each.label} lost {each.patterns} of {each.of} stored frames"
                for each in self.lost
            ),
        )


@dataclass(frozen=True)
class Before:
    """The replay memory before a session: vector and slot of each row, and which were right."""

    vectors: NDArray[np.float64]
    slots: SlotArray
    right: NDArray[np.bool_]
    latents: NDArray[Any]
    zero: int = 0  # value of a latent that stands for 0

    @classmethod
    def of(cls, memory: ReplayMemory, answer: Answer) -> Before:
        """Copy the memory, which the session will change, and get the answers for it."""
        latents, slots = memory.latents(np.arange(len(memory))), memory.slots.copy()
        vectors, right = to_vectors(latents, memory.zero), _right(latents, slots, answer)
        return cls(vectors, slots, right, latents, memory.zero)

    def diagnose(
        self, latents: Latents, slots: SlotArray, labels: Sequence[str | None], answer: Answer
    ) -> Diagnosis:
        """Compare with the session's latents, and with the answers after it.

        `labels` has the name of each slot after the session.
        """
        names = [str(label) for label in labels]
        vectors = to_vectors(np.stack(list(latents)), self.zero)
        return Diagnosis(
            tuple(disagreements(vectors, slots, self.vectors, self.slots, names)),
            tuple(neighbours(vectors, slots, self.vectors, self.slots, names)),
            tuple(self._losses(_right(self.latents, self.slots, answer), names)),
        )

    def _losses(self, right: NDArray[np.bool_], names: Sequence[str]) -> Iterator[Loss]:
        lost = self.slots[self.right & ~right]
        found, counts = np.unique(lost, return_counts=True)
        for place in np.argsort(-counts, kind="stable"):
            slot = found[place]
            yield Loss(names[slot], int(counts[place]), int((self.slots == slot).sum()))


def to_vectors(latents: NDArray[Any], zero: int = 0) -> NDArray[np.float64]:
    """Return (n, F): means over pixels, their signed square roots, scaled to length 1.

    `zero` is the value that stands for 0.
    """
    pixels = tuple(range(1, latents.ndim - 1))
    pooled = latents.mean(axis=pixels, dtype=np.float64) - zero
    return _unit(np.sign(pooled) * np.sqrt(np.abs(pooled)))


def disagreements(
    vectors: NDArray[np.float64],
    slots: SlotArray,
    stored: NDArray[np.float64],
    stored_slots: SlotArray,
    names: Sequence[str],
) -> list[Disagreement]:
    """Return the session's frames that are nearer to the mean of another class than to their own.

    The mean of the frame's own class excludes the frame; a class with one frame is skipped.
    """
    classes, sums, counts = _sums(vectors, slots, stored, stored_slots)
    own = np.searchsorted(classes, slots)
    cosines = vectors @ _unit(sums).T
    rows = np.arange(len(slots))
    cosines[rows, own] = (vectors * _unit(sums[own] - vectors)).sum(axis=1)
    best = cosines.argmax(axis=1)
    wrong = (best != own) & (counts[own] > 1)
    found = []
    for slot, other in sorted({(int(own[row]), int(best[row])) for row in rows[wrong]}):
        frames = rows[wrong & (own == slot) & (best == other)]
        label, looks_like = names[classes[slot]], names[classes[other]]
        of = int((own == slot).sum())
        found.append(Disagreement(label, looks_like, tuple(frames.tolist()), of))
    return sorted(found, key=lambda each: -len(each.frames))


def neighbours(
    vectors: NDArray[np.float64],
    slots: SlotArray,
    stored: NDArray[np.float64],
    stored_slots: SlotArray,
    names: Sequence[str],
) -> list[Neighbour]:
    """Return the stored classes nearest to each class of the session that is not stored yet."""
    known = np.unique(stored_slots)
    new = np.setdiff1d(slots, known)
    if not len(known):
        return []
    centres = _unit(np.stack([stored[stored_slots == slot].sum(axis=0) for slot in known]))
    found = []
    for slot in new:
        cosines = centres @ _unit(vectors[slots == slot].sum(axis=0))
        for place in np.argsort(-cosines, kind="stable")[:NEAREST]:
            found.append(Neighbour(names[slot], names[known[place]], float(cosines[place])))
    return found


def _sums(
    vectors: NDArray[np.float64],
    slots: SlotArray,
    stored: NDArray[np.float64],
    stored_slots: SlotArray,
) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[Any]]:
    """Return the classes in session and memory, with the sum and the number of vectors of each."""
    every = np.concatenate([slots, stored_slots])
    classes, place, counts = np.unique(every, return_inverse=True, return_counts=True)
    sums = np.zeros((len(classes), vectors.shape[1]))
    np.add.at(sums, place, np.concatenate([vectors, stored]))
    return classes, sums, counts


def _unit(x: NDArray[np.float64]) -> NDArray[np.float64]:
    length = np.linalg.norm(x, axis=-1, keepdims=True)
    return np.asarray(x / np.maximum(length, 1e-12))


def _right(latents: NDArray[Any], slots: SlotArray, answer: Answer) -> NDArray[np.bool_]:
    """Return (n,): True where the likeliest slot is the pattern's own."""
    if not len(slots):
        return np.zeros(0, bool)
    probabilities = answer(latents)
    # While nothing is learned, all are 0, and the first slot is not an answer.
    return np.asarray((probabilities.argmax(axis=1) == slots) & (probabilities.max(axis=1) > 0))
