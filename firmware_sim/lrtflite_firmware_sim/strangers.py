"""Unknown answers of a simulation, whose classes are strangers until they are taught."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from lrtflite.workbench.unknown import UnknownAnswers, unknown_answers


class Strangers:
    """The familiarity of test frames before and after their class was taught.

    Frames of a class count as unknown in the last test before the class is taught, and as known in
    the last test of the run, so each frame counts at most once on either side.
    """

    def __init__(self, truth: NDArray[np.int64], *, default: float | None = None) -> None:
        """Begin a run whose test frames have the classes `truth` (N,).

        `default` is the threshold of the bundle, if it has one.
        """
        self._truth, self._default = truth, default
        self._known: NDArray[np.float64] = np.zeros(0)
        self._unknown: dict[int, NDArray[np.float64]] = {}

    def tested(self, familiarity: NDArray[np.float64] | None, *, seen: Collection[int]) -> None:
        """Add a test (N,) after which the classes `seen` had been taught; None adds nothing."""
        if familiarity is None:
            return
        known = np.isin(self._truth, list(seen))
        unknown = {
            int(label): familiarity[self._truth == label]
            for label in np.unique(self._truth[~known])
        }
        self._known, self._unknown = familiarity[known], {**self._unknown, **unknown}

    def answers(self) -> UnknownAnswers | None:
        """Judge the thresholds; return None if the device does not report familiarity."""
        if not len(self._known):
            return None
        unknown = np.concatenate([np.zeros(0), *self._unknown.values()])
        return unknown_answers(self._known, unknown, default=self._default)
