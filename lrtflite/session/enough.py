"""Notice when a lesson has enough frames, from its latents alone, for any head.

Frames of one second are alike, so each second is left out as a whole: its frames are compared with
the class without them, and with the other classes in the replay memory. The constants were chosen
on validation material (docs/studies/hints.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.replay.memory import ReplayMemory
from lrtflite.session.diagnosis import to_vectors, unit

# Number of successive frames that are left out together, and of such blocks before any judgement.
BLOCK, MIN_BLOCKS = 5, 3
# Share of the frames that must be nearer to the rest of their class than to any other class.
TOLD_APART = 0.95
# Variance of the class's mean, relative to its squared distance from the nearest other class. The
# spread of the class, twice, stands for this distance while there is no other class.
MEAN_ERROR = 0.08
# Distance of the newest frames from the nearest earlier one, relative to the spread of the class,
# or from the rest of the class, relative to that of the earlier blocks. One of them must be small.
NOVELTY, SURPRISE = 0.6, 1.2
# Spread of the class below which its frames are copies of each other.
MIN_SPREAD = 1e-5
# Maximum number of frames that are looked at, and of stored latents of another class.
MAX_FRAMES, ROWS = 1000, 30

Vectors = NDArray[np.float32]


class EnoughFrames:
    """The latents of one lesson, in the order in which they arrive.

    `memory` is that of the learner, whose other classes the frames must be told apart from; `slot`
    is the class that is being taught, None for a new one. The memory is read once, here.

    Latents alone do not tell a camera that stands still, with a little noise, from a thing that
    looks alike on all sides: count `FrameHints.fresh` as well.
    """

    def __init__(self, memory: ReplayMemory | None = None, *, slot: int | None = None) -> None:
        self._zero = 0 if memory is None else memory.zero
        self._others = None if memory is None else stored_means(memory, without=slot)
        self._vectors: Vectors | None = None
        self._frames = 0
        self._enough = False

    @property
    def enough(self) -> bool:
        """Return whether more frames would add little. Once True, it stays True."""
        return self._enough

    @property
    def frames(self) -> int:
        """Return the number of latents so far."""
        return self._frames

    def add(self, latent: NDArray[Any]) -> None:
        """Add the latent (...) of the next frame."""
        row = self._frames
        self._frames += 1
        if self._enough or row >= MAX_FRAMES:
            return
        vector = to_vectors(np.asarray(latent)[np.newaxis], self._zero)[0]
        if self._vectors is None:
            self._vectors = np.empty((MIN_BLOCKS * BLOCK, len(vector)), np.float32)
        elif row == len(self._vectors):
            self._vectors = np.concatenate([self._vectors, np.empty_like(self._vectors)])
        self._vectors[row] = vector
        if self._frames % BLOCK == 0 and self._frames >= MIN_BLOCKS * BLOCK:
            self._enough = is_enough(self._vectors[: self._frames], self._others)


def is_enough(vectors: Vectors, others: Vectors | None = None) -> bool:
    """Return whether whole blocks of vectors (n, F) of length 1 describe their class well.

    `others` (C, F) has the mean of each other class; None without any.
    """
    blocks = len(vectors) // BLOCK
    by_block = vectors.reshape(blocks, BLOCK, -1)
    sums = by_block.sum(axis=1)
    total = sums.sum(axis=0)
    mean = total / len(vectors)
    spread = max(0.0, 1.0 - float(mean @ mean))
    if spread < MIN_SPREAD:
        return False
    cosines = np.einsum("kbf,kf->kb", by_block, unit(total - sums))
    nearest = (vectors[:-BLOCK] @ by_block[-1].T).max(axis=0)
    is_new = (1 - nearest).mean() > NOVELTY * spread
    if is_new and (1 - cosines[-1]).mean() > SURPRISE * (1 - cosines[:-1]).mean():
        return False
    distance = 2 * spread
    if others is not None:
        foreign = (vectors @ unit(others).T).max(axis=1)
        if (cosines.reshape(-1) > foreign).mean() < TOLD_APART:
            return False
        distance = float(np.square(others - mean).sum(axis=1).min())
    means = sums / BLOCK
    error = float(np.square(means - mean).sum()) / (blocks * (blocks - 1))
    return error <= MEAN_ERROR * distance


def stored_means(memory: ReplayMemory, *, without: int | None) -> Vectors | None:
    """Return the mean vector of each other class in the memory, (C, F); None if it has none."""
    means = []
    for slot in np.unique(memory.slots):
        if slot != without:
            rows = np.flatnonzero(memory.slots == slot)[:ROWS]
            means.append(to_vectors(memory.latents(rows), memory.zero).mean(axis=0))
    return np.stack(means).astype(np.float32) if means else None
