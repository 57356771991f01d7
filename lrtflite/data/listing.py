"""Name the first few of many in a message, and count the others."""

from __future__ import annotations

from collections.abc import Sequence

NAMED = 3


def first_few(names: Sequence[str], named: int = NAMED) -> str:
    """Return `a, b, c and 4 more`."""
    more = len(names) - named
    return ", ".join(names[:named]) + (f" and {more} more" if more > 0 else "")
