"""Parse JSON that somebody else may have written."""

from __future__ import annotations

import json
from typing import Any


def strict_json(text: str) -> Any:
    """Parse JSON without repeated names, NaN or endless numbers, or raise ValueError."""
    return json.loads(
        text, object_pairs_hook=_once, parse_constant=_no_number, parse_int=_short_int
    )


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name twice")
    return found


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is not a number")


def _short_int(text: str) -> int:
    # Python takes quadratic time for the digits of a long number.
    if len(text) > 50:
        raise ValueError("a number of more than 50 digits")
    return int(text)
