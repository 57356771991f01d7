"""Evenly spread indices, for some frames of a video or some values of an array."""

from __future__ import annotations

from typing import Literal

# Index chosen from each of `count` equal parts of a sequence: its first or its middle one. "ends"
# spreads the indices from the very first to the very last.
Place = Literal["start", "middle", "ends"]


def evenly(length: int, count: int | None, *, place: Place = "start") -> tuple[int, ...]:
    """Return `count` ascending indices below `length`; all of them for `count` None.

    Four out of 10 indices are 0, 2, 5, 7 with "start", 1, 3, 6, 8 with "middle" and 0, 3, 6, 9 with
    "ends".
    """
    if count is None or count >= length:
        return tuple(range(length))
    if place == "middle":
        return tuple((2 * k + 1) * length // (2 * count) for k in range(count))
    if place == "ends":
        return tuple(k * (length - 1) // max(count - 1, 1) for k in range(count))
    return tuple(k * length // count for k in range(count))
