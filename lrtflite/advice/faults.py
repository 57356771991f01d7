"""Find faulty patterns and pictures, as pure functions of arrays.

The constants were chosen on validation material (docs/studies/hints.md).
"""

from __future__ import annotations

from collections.abc import Sequence
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
        between = 1 - means[place] @ means[own[row]]
        cosines = vectors @ vectors[row]
        cosines[row] = -np.inf
        nearest = np.argsort(-cosines, kind="stable")[:NEIGHBOURS]
        agreeing = (classes[nearest] == other).sum()
        if margin > MARGIN * between and agreeing >= min(AGREEING, len(vectors) - 1):
            faults.append((row, other))
    return sorted(faults)


def repeats(
    thumbnails: NDArray[np.float32], colours: NDArray[np.float32], videos: Sequence[int | None]
) -> list[tuple[int, int]]:
    """Return the rows that repeat an earlier one, each with the first such row.

    `thumbnails` (n, K) and `colours` (n, 3) are of each picture; `videos` has the number of the
    video that it is from, None for a still. Frames of one video may be alike.
    """
    numbers = np.array([-1 if video is None else video for video in videos])
    found = []
    for row in range(1, len(thumbnails)):
        same = _same(thumbnails[:row], colours[:row], thumbnails[row], colours[row])
        if numbers[row] >= 0:
            same &= numbers[:row] != numbers[row]
        if same.any():
            found.append((row, int(same.argmax())))
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


def _same(
    thumbnails: NDArray[np.float32],
    colours: NDArray[np.float32],
    thumbnail: NDArray[np.float32],
    colour: NDArray[np.float32],
) -> NDArray[np.bool_]:
    change = np.sqrt(np.square(thumbnails - thumbnail).mean(axis=-1))
    return np.asarray((change < ALIKE) & (np.abs(colours - colour).max(axis=-1) < COLOUR))
