"""Find faulty patterns and pictures, as pure functions of arrays.

The constants were chosen on validation material (docs/studies/hints.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.frames.hints import ALIKE
from lrtflite.replay.policies import SlotArray
from lrtflite.session.diagnosis import disagreements, unit

# Nearest patterns that are asked for their class, and how many must be of the other class.
NEIGHBOURS, AGREEING = 5, 3
# Part of the distance between two classes by which a pattern must be nearer to the other one.
MARGIN = 0.6
# Largest difference between the mean colours of two pictures that are the same, in levels.
COLOUR = 12.0

# Rows whose differences from all others are computed at a time.
_AT_ONCE = 256

Vectors = NDArray[Any]


def mislabelled(vectors: Vectors, classes: SlotArray, *, least: int = 2) -> list[tuple[int, int]]:
    """Return the rows (n, F) that look like another class, each with the number of that class.

    Such a row is nearer to the mean of the other class by a margin, and most of its nearest rows
    are of that class. A class with fewer than `least` rows is too small to tell, and skipped.
    """
    numbers, own, counts = np.unique(classes, return_inverse=True, return_counts=True)
    if len(numbers) < 2:
        return []
    names = [str(number) for number in range(int(numbers[-1]) + 1)]
    empty = np.empty((0, vectors.shape[1]))
    found = disagreements(vectors, classes, empty, np.empty(0, np.int32), names)
    sums = np.stack([vectors[classes == number].sum(axis=0) for number in numbers])
    means = unit(sums)
    faults = []
    for row, other in ((row, int(each.looks_like)) for each in found for row in each.frames):
        if counts[own[row]] < least:
            continue
        place = int(np.searchsorted(numbers, other))
        margin = vectors[row] @ means[place] - vectors[row] @ unit(sums[own[row]] - vectors[row])
        if margin <= MARGIN * (1 - means[place] @ means[own[row]]):
            continue
        cosines = vectors @ vectors[row]
        cosines[row] = -np.inf
        nearest = np.argsort(-cosines, kind="stable")[:NEIGHBOURS]
        if (classes[nearest] == other).sum() >= min(AGREEING, len(vectors) - 1):
            faults.append((row, other))
    return sorted(faults)


def repeats(
    thumbnails: NDArray[np.float32], colours: NDArray[np.float32], videos: Sequence[int | None]
) -> list[tuple[int, int]]:
    """Return the rows that repeat an earlier one, each with the first such row.

    `thumbnails` (n, K) and `colours` (n, 3) are of each picture; `videos` has the number of the
    video that it is from, None for a still. Frames of one video may be alike.
    """
    found = []
    for row, near in enumerate(_near(thumbnails)):
        earlier = near[near < row]
        if videos[row] is not None:
            earlier = earlier[[videos[other] != videos[row] for other in earlier]]
        same = _same(thumbnails[earlier], colours[earlier], thumbnails[row], colours[row])
        if same.any():
            found.append((row, int(earlier[same.argmax()])))
    return found


def count_different(thumbnails: NDArray[np.float32], colours: NDArray[np.float32]) -> int:
    """Return the number of pictures that are left when each leaves out those that repeat it."""
    kept: list[int] = []
    for row in range(len(thumbnails)):
        if not _same(thumbnails[kept], colours[kept], thumbnails[row], colours[row]).any():
            kept.append(row)
    return len(kept)


def count_different_vectors(vectors: Vectors, *, least: float) -> int:
    """Return the number of vectors (n, F) that are left without those nearer than `least`."""
    kept: list[int] = []
    for row in range(len(vectors)):
        if not kept or (1 - vectors[kept] @ vectors[row]).min() >= least:
            kept.append(row)
    return len(kept)


def _near(thumbnails: NDArray[np.float32]) -> Iterator[NDArray[np.intp]]:
    """Yield, for each thumbnail, the rows of those that may be the same, itself among them.

    Products of matrices are quick, and a little inexact.
    """
    norms = np.square(thumbnails).sum(axis=1)
    most = 2 * ALIKE**2 * thumbnails.shape[1]
    for start in range(0, len(thumbnails), _AT_ONCE):
        block = slice(start, start + _AT_ONCE)
        products = thumbnails[block] @ thumbnails.T
        distances = norms[block, np.newaxis] + norms - 2 * products
        yield from (np.flatnonzero(row < most) for row in distances)


def _same(
    thumbnails: NDArray[np.float32],
    colours: NDArray[np.float32],
    thumbnail: NDArray[np.float32],
    colour: NDArray[np.float32],
) -> NDArray[np.bool_]:
    change = np.sqrt(np.square(thumbnails - thumbnail).mean(axis=-1))
    return np.asarray((change < ALIKE) & (np.abs(colours - colour).max(axis=-1) < COLOUR))
