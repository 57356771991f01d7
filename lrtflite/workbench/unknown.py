"""Thresholds of the answer "unknown": how many known frames each refuses, and others it catches.

The familiarity of a frame is its place between the other classes, 0, and its own class, 1. In older
bundles, whose manifest has no threshold, it is the share of the patterns taught for its class that
are less typical of it, so a threshold of 0.1 refuses a tenth of the frames that look like the
taught ones. Only a test shows how many frames taken elsewhere a threshold refuses, and how many
unknown things it catches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lrtflite.arguments import real_number
from lrtflite.errors import InputError

# Thresholds on the way from the other classes to the own one, and shares of taught patterns.
THRESHOLDS = (0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7)
SHARES = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)
# Largest share of known frames that a recommended threshold may refuse.
MAX_REFUSED = 0.1
# Normal deviate of an interval that holds with 95 % confidence.
_DEVIATE = 1.96


@dataclass(frozen=True)
class Threshold:
    """A threshold, the known frames that it refuses, and the unknown frames that it catches."""

    value: float
    refused: int
    caught: int


@dataclass(frozen=True)
class UnknownAnswers:
    """The effect of each threshold on `known` frames of learned classes and `unknown` other frames.

    `recommended` is the threshold that catches the most while it refuses at most a share
    `most_refused` of the known frames, and the smallest of several. Without unknown frames it is
    the largest such threshold, but not above the `default` of the bundle; None if there is none.

    Without a default, thresholds are shares of the taught patterns. None above `most_refused` is
    recommended then, because it would refuse more than that of frames like those that were taught.
    """

    known: int
    unknown: int
    most_refused: float
    thresholds: tuple[Threshold, ...]
    recommended: float | None
    default: float | None = None


def unknown_answers(
    known: ArrayLike,
    unknown: ArrayLike,
    *,
    most_refused: float = MAX_REFUSED,
    default: float | None = None,
) -> UnknownAnswers:
    """Judge every threshold by the familiarity (n,) of known frames and (m,) of unknown ones.

    `default` is the threshold of the bundle, if it has one.
    """
    most_refused = real_number("most_refused", most_refused, most=1.0)
    # As in `predict`, which compares with Python's floats.
    knowns, unknowns = np.asarray(known, np.float64), np.asarray(unknown, np.float64)
    if not len(knowns):
        raise InputError(
            "Expected the familiarity of at least one known frame, got none",
            "add frames of learned classes",
        )
    values = SHARES if default is None else sorted({*THRESHOLDS, default})
    judged = tuple(
        Threshold(value, _below(knowns, value), _below(unknowns, value)) for value in values
    )
    fitting = [each for each in judged if each.refused / len(knowns) <= most_refused]
    most = most_refused if default is None else default
    if default is None or not len(unknowns):
        fitting = [each for each in fitting if each.value <= most]
    return UnknownAnswers(
        known=len(knowns),
        unknown=len(unknowns),
        most_refused=most_refused,
        thresholds=judged,
        recommended=_recommended(fitting, len(unknowns)),
        default=default,
    )


def interval(count: int, total: int) -> tuple[float, float]:
    """Return the limits of a share with 95 % confidence (Wilson), from `count` of `total` frames.

    They are (0, 1) without frames.
    """
    if not total:
        return 0.0, 1.0
    share, square = count / total, _DEVIATE**2
    middle = share + square / (2 * total)
    half = _DEVIATE * math.sqrt(share * (1 - share) / total + square / (4 * total**2))
    scale = 1 + square / total
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)


def unknown_line(found: UnknownAnswers) -> str:
    """Return one line with the recommended threshold, its measured effect and its uncertainty."""
    if found.recommended is None:
        least = found.thresholds[0]
        return (
            "unknown: every threshold refuses too many known frames: more than "
            f"{100 * found.most_refused:.3g}%, as {least.value:g} refuses "
            f"{_share(least.refused, found.known)}; leave it off, or teach in more places"
        )
    best = next(each for each in found.thresholds if each.value == found.recommended)
    refuses = f"unknown={best.value:g} refuses {_share(best.refused, found.known)} known frames"
    if not found.unknown:
        return f"{refuses}; what it catches is not measured, as every tested class is learned"
    return f"{refuses} and catches {_share(best.caught, found.unknown)} unknown ones"


def _recommended(fitting: Sequence[Threshold], unknown: int) -> float | None:
    if not fitting:
        return None
    if not unknown:
        return fitting[-1].value
    return max(fitting, key=lambda each: each.caught).value  # the first of several


def _below(familiarity: NDArray[np.float64], threshold: float) -> int:
    return int(np.count_nonzero(familiarity < threshold))


def _share(count: int, total: int) -> str:
    low, high = (100 * limit for limit in interval(count, total))
    return f"{count / total:.1%} ({low:.0f} to {high:.0f}%) of {total:,}"
