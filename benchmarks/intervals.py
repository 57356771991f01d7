"""Intervals of paired differences, where each seed gives one figure per variant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lrtflite.errors import InputError

# 97.5 % quantiles of Student's t with 1, 2, 3, ... degrees of freedom.
T_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201)


def paired(values: Sequence[float], base: Sequence[float]) -> tuple[float, float]:
    """Return the mean of `values - base`, and half the width of its 95 % interval."""
    differences = np.subtract(values, base)
    if not 2 <= len(differences) <= len(T_975) + 1:
        raise InputError(
            f"Expected 2 to {len(T_975) + 1} seeds for an interval, got {len(differences)}",
            "change --seeds",
        )
    error = differences.std(ddof=1) / np.sqrt(len(differences))
    return float(differences.mean()), float(T_975[len(differences) - 2] * error)


def shown(values: Sequence[float], base: Sequence[float]) -> str:
    """Return a difference in points with its interval; bold where the interval excludes zero."""
    mean, half = (100 * value for value in paired(values, base))
    text = f"{mean:+.1f} ± {half:.1f}"
    return f"**{text}**" if abs(mean) > half else text
