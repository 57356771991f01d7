"""Intervals of means and of paired differences, and an exact paired test."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrtflite.errors import InputError

# 97.5 % quantiles of Student's t with 1, 2, 3, ... degrees of freedom.
T_975 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
# 97.5 % quantile of the normal distribution.
_NORMAL = 1.959964
# Pairs up to which the test tries every combination of signs, and combinations drawn beyond.
EXACT_PAIRS = 14
DRAWS = 20_000


@dataclass(frozen=True)
class Estimate:
    """The mean of `n` values and their standard deviation; `half` is half its 95 % interval.

    The standard deviation is that of a sample (n - 1). One value has neither.
    """

    mean: float
    n: int
    std: float | None = None
    half: float | None = None

    @classmethod
    def of(cls, values: Sequence[float]) -> Estimate:
        """Return the estimate from values of independent runs."""
        if not len(values):
            raise InputError("Expected at least one value, got none", "measure first")
        mean = float(np.mean(values))
        if len(values) == 1:
            return cls(mean, 1)
        std = float(np.std(values, ddof=1))
        return cls.from_spread(mean, std, len(values))

    @classmethod
    def from_spread(cls, mean: float, std: float | None, n: int) -> Estimate:
        """Return the estimate from a mean and a standard deviation, as papers print them."""
        if std is None or n < 2:
            return cls(mean, n)
        return cls(mean, n, std, t_975(n - 1) * std / n**0.5)


@dataclass(frozen=True)
class Difference:
    """The mean of paired differences, half its 95 % interval, and the p of the sign-flip test."""

    mean: float
    half: float
    p: float
    n: int

    @property
    def is_clear(self) -> bool:
        """Return whether the interval excludes zero."""
        return abs(self.mean) > self.half


def t_975(degrees: float) -> float:
    """Return the 97.5 % quantile of Student's t; a fraction of a degree is dropped."""
    whole = int(degrees)
    if whole < 1:
        raise InputError(
            f"Expected at least 1 degree of freedom, got {degrees}", "give at least two values"
        )
    if whole <= len(T_975):
        return T_975[whole - 1]
    # Cornish-Fisher expansion: exact to three decimals beyond 30 degrees.
    z = _NORMAL
    return z + (z**3 + z) / (4 * whole) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * whole**2)


def paired(values: Sequence[float], base: Sequence[float]) -> Difference:
    """Compare two variants run by run: `values[i]` and `base[i]` are of the same seed.

    The p is that of the exact two-sided sign-flip test: the share of the 2^n ways to swap the two
    variants within pairs whose mean difference is at least as large. Beyond 14 pairs, 20,000 ways
    are drawn with a fixed seed, and the one that was measured is added.
    """
    if len(values) != len(base):
        raise InputError(
            f"Expected pairs, got {len(values)} and {len(base)} values", "give both of each seed"
        )
    differences = np.subtract(values, base)
    if len(differences) < 2:
        raise InputError(
            f"Expected at least 2 seeds for an interval, got {len(differences)}", "give more seeds"
        )
    found = Estimate.of(differences.tolist())
    return Difference(found.mean, found.half or 0.0, _sign_flip_p(differences), found.n)


def welch(first: Estimate, second: Estimate) -> float | None:
    """Return half the 95 % interval of the difference of two independent means.

    A mean without a spread counts as exact. None if neither has one.
    """
    parts = [(each.std**2 / each.n, each.n - 1) for each in (first, second) if each.std is not None]
    variance = sum(part for part, _ in parts)
    if not parts:
        return None
    if variance == 0:
        return 0.0
    degrees = variance**2 / sum(part**2 / free for part, free in parts if part > 0)
    # 6.999999 is 7 and its rounding.
    return float(t_975(degrees * (1 + 1e-9)) * variance**0.5)


def _sign_flip_p(differences: NDArray[np.float64]) -> float:
    n = len(differences)
    if n <= EXACT_PAIRS:
        signs = np.array(list(itertools.product((-1, 1), repeat=n)))
    else:
        signs = np.random.default_rng(0).choice((-1, 1), size=(DRAWS, n))
    means = np.abs(signs @ differences)
    # Sums of the same numbers in another order differ by rounding.
    reached = abs(differences.sum()) * (1 - 1e-9)
    count = int(np.sum(means >= reached))
    # What was measured is one way as well, which a drawing may miss.
    return count / len(signs) if n <= EXACT_PAIRS else (count + 1) / (len(signs) + 1)
