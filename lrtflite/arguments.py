"""Check the numbers that a caller passes: only Python or numpy numbers within limits are accepted.

A string, a bool or a NaN raises a one-line error here instead of failing deep inside.
"""

from __future__ import annotations

import math
from typing import SupportsFloat, SupportsIndex, cast

import numpy as np

from lrtflite.errors import InputError

# Largest number that a model can hold; anything larger is infinity.
LARGEST_FLOAT32 = float(np.finfo(np.float32).max)


def whole_number(name: str, value: object, *, least: int = 0, most: int | None = None) -> int:
    """Return `value` as an int, or raise InputError."""
    if _is_number(value, (int, np.integer)):
        number = int(cast(SupportsIndex, value))
        if number >= least and (most is None or number <= most):
            return number
    raise InputError(
        f"Expected {name} as a whole number {_limits(least, most)}, got {shown(value)}",
    )


def real_number(
    name: str, value: object, *, least: float = 0.0, most: float = LARGEST_FLOAT32
) -> float:
    """Return `value` as a float, or raise InputError, including for NaN and infinity."""
    if _is_number(value, (int, float, np.integer, np.floating)):
        number = _float(cast(SupportsFloat, value))
        if math.isfinite(number) and least <= number <= most:
            return number
    limit = None if most == LARGEST_FLOAT32 else most
    raise InputError(
        f"Expected {name} as a number {_limits(least, limit)}, got {shown(value)}",
    )


def shown(value: object) -> str:
    """Return `value` as error messages show it: on one line, and shortened."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def printable(text: str) -> str:
    """Return `text` with every control character as an escape, fit for a terminal."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def _is_number(value: object, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool)


def _float(value: SupportsFloat) -> float:
    try:
        return float(value)
    except OverflowError:  # an int larger than any float
        return math.inf


def _limits(least: float, most: float | None) -> str:
    low = _plain(least)
    return f"of at least {low}" if most is None else f"from {low} to {_plain(most)}"


def _plain(limit: float) -> str:
    return f"{limit:,}" if isinstance(limit, int) else f"{limit:g}"
