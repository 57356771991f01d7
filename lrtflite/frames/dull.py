"""Notice a session from which little can be learned: frames of one colour, or the same one again.

A covered lens, a camera that has not started and a stuck stream all give frames that are easy to
learn, but no use for recognising anything later.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.counted import counted

# Share of a class's frames that may be of one colour without a warning.
SHARE = 0.5
# Frames per different picture that are worth a warning. A camera that is asked more often than it
# records returns each picture a few times.
REPEATS = 10
# Smallest number of frames of a class that is judged.
SEVERAL = 5

Frame = NDArray[np.uint8]


class DullFrames:
    """The frames of one session, as they are extracted: which are plain, which came before."""

    def __init__(self) -> None:
        self._plain: list[bool] = []
        self._digests: list[int] = []

    def watching(self, extract: Callable[[Frame], NDArray[Any]]) -> Callable[[Frame], NDArray[Any]]:
        """Return `extract`, which also looks at each frame."""

        def watched(frame: Frame) -> NDArray[Any]:
            self._plain.append(_is_plain(frame))
            self._digests.append(zlib.crc32(frame.tobytes()))
            return extract(frame)

        return watched

    def warnings(self, labels: Sequence[str]) -> Iterator[str]:
        """Yield a line for each class with such frames; `labels` has the class of each frame."""
        for label in dict.fromkeys(labels):
            rows = [row for row, other in enumerate(labels) if other == label]
            plain = sum(self._plain[row] for row in rows)
            if len(rows) < SEVERAL:
                continue
            different = len({self._digests[row] for row in rows})
            if plain >= SHARE * len(rows):
                yield (
                    f"{plain} of {len(rows)} frames of {label} show one colour only; check the "
                    "camera, and teach it again after an undo"
                )
            elif different <= max(1, len(rows) // REPEATS):
                yield (
                    f"{len(rows)} frames of {label} are {counted(different, 'picture')} again and "
                    "again; "
                    "check the camera, or show it from more sides"
                )


def _is_plain(frame: Frame) -> bool:
    few = frame[::16, ::16]  # almost every picture shows more than one colour here
    return bool((few == frame[0, 0]).all() and (frame == frame[0, 0]).all())
