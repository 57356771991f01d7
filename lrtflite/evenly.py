"""Indices that are evenly spread: some frames of a video, some values of an array."""

from __future__ import annotations

from typing import Literal

# Which index stands for each of the equal parts of a sequence: its first one, its middle one, or
# indices from the very first to the very last.
Place = Literal["start", "middle", "ends"]


def evenly(length: int, count: int | None, *, place: Place = "start") -> tuple[int, ...]:
    """Return `count` ascending indices below `length`; all of them if `count` is None or as many.

    Of 10 indices, 4 are 0, 2, 5, 7 at the start, 1, 3, 6, 8 in the middle and 0, 3, 6, 9 with both
    ends.
    """
    if count is None or count >= length:
        return tuple(range(length))
    if place == "middle":
        return tuple((2 * k + 1) * length // (2 * count) for k in range(count))
    if place == "ends":
        return tuple(k * (length - 1) // max(count - 1, 1) for k in range(count))
    return tuple(k * length // count for k in range(count))
