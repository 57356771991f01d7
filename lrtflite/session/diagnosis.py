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
# Answer that stands for a frame that was not judged.
NOT_JUDGED = -1
# Number of classes that a note names, and the replay size that it recommends.
NAMED, RECOMMENDED = 3, 200


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
    """The likely reasons for wrong answers after a session, the most serious first in each list.

    `unseen` has the labels learned before of which no frames are stored, so that neither `nearest`
    nor `lost` can have them.
    """

    disagreements: tuple[Disagreement, ...] = ()
    nearest: tuple[Neighbour, ...] = ()
    lost: tuple[Loss, ...] = ()
    unseen: tuple[str, ...] = ()

    @property
    def note(self) -> str | None:
        """Return what a diagnosis of this learner cannot see, and how to change that."""
        if not self.unseen:
            return None
        names, more = ", ".join(self.unseen[:NAMED]), len(self.unseen) - NAMED
        return (
            f"No frames are stored of {names}{f' and {more} more' * (more > 0)}, so what such "
            f"classes lose is not seen; a replay size of {RECOMMENDED} stores some"
        )

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
    """The replay memory before a session: vector and slot of each row, and which were right.

    `unseen` has the slots that have learned and have no row.
    """

    vectors: NDArray[np.float64]
    slots: SlotArray
    right: NDArray[np.bool_]
    latents: NDArray[Any]
    zero: int = 0  # value of a latent that stands for 0
    unseen: tuple[int, ...] = ()

    @classmethod
    def of(cls, memory: ReplayMemory, answer: Answer, *, learned: NDArray[np.bool_]) -> Before:
        """Copy the memory, which the session will change, and get the answers for it."""
        latents, slots = memory.latents(np.arange(len(memory))), memory.slots.copy()
        vectors, right = to_vectors(latents, memory.zero), _right(latents, slots, answer)
        unseen = tuple(np.setdiff1d(np.flatnonzero(learned), slots).tolist())
        return cls(vectors, slots, right, latents, memory.zero, unseen)

    def diagnose(
        self,
        latents: Latents,
        slots: SlotArray,
        labels: Sequence[str | None],
        answer: Answer,
        *,
        rehearsed: SlotArray | None = None,
    ) -> Diagnosis:
        """Compare with the session's latents, and with the answers after it.

        `labels` has the name of each slot after the session. `rehearsed` has the answers of
        `rehearse`, which see all classes; without them, the frames are compared with stored ones.
        """
        names = [str(label) for label in labels]
        vectors = to_vectors(np.stack(list(latents)), self.zero)
        return Diagnosis(
            tuple(
                disagreements(vectors, slots, self.vectors, self.slots, names)
                if rehearsed is None
                else wrong_answers(rehearsed, slots, names)
            ),
            tuple(neighbours(vectors, slots, self.vectors, self.slots, names)),
            tuple(self._losses(_right(self.latents, self.slots, answer), names)),
            tuple(names[slot] for slot in self.unseen),
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
    return unit(np.sign(pooled) * np.sqrt(np.abs(pooled)))


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
    cosines = vectors @ unit(sums).T
    rows = np.arange(len(slots))
    cosines[rows, own] = (vectors * unit(sums[own] - vectors)).sum(axis=1)
    best = cosines.argmax(axis=1)
    judged = np.where(counts[own] > 1, classes[best], NOT_JUDGED)
    return wrong_answers(judged, slots, names)


def wrong_answers(answers: SlotArray, slots: SlotArray, names: Sequence[str]) -> list[Disagreement]:
    """Return the frames whose answer (n,) is another slot than their own; skip NOT_JUDGED."""
    rows = np.arange(len(slots))
    wrong = (answers != slots) & (answers != NOT_JUDGED)
    found = []
    for slot, other in sorted({(int(slots[row]), int(answers[row])) for row in rows[wrong]}):
        frames = rows[wrong & (slots == slot) & (answers == other)]
        of = int((slots == slot).sum())
        found.append(Disagreement(names[slot], names[other], tuple(frames.tolist()), of))
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
    centres = unit(np.stack([stored[stored_slots == slot].sum(axis=0) for slot in known]))
    found = []
    for slot in new:
        cosines = centres @ unit(vectors[slots == slot].sum(axis=0))
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


def unit(x: NDArray[Any]) -> NDArray[Any]:
    """Return the vectors (..., F) scaled to length 1; zeros stay zeros."""
    length = np.linalg.norm(x, axis=-1, keepdims=True)
    return np.asarray(x / np.maximum(length, 1e-12))


def _right(latents: NDArray[Any], slots: SlotArray, answer: Answer) -> NDArray[np.bool_]:
    """Return (n,): True where the likeliest slot is the pattern's own."""
    if not len(slots):
        return np.zeros(0, bool)
    probabilities = answer(latents)
    # While nothing is learned, all are 0, and the first slot is not an answer.
    return np.asarray((probabilities.argmax(axis=1) == slots) & (probabilities.max(axis=1) > 0))
