"""Name the first few items of a list in a message, and count the rest."""

from __future__ import annotations

from collections.abc import Sequence

NAMED = 3


def first_few(names: Sequence[str], named: int = NAMED) -> str:
    """Return the first `named` names and the number of others: `a, b, c and 4 more`."""
    more = len(names) - named
    return ", ".join(names[:named]) + (f" and {more} more" if more > 0 else "")
