"""Rows of cells as aligned lines for a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence


def table(rows: Sequence[Sequence[str]], *, left: Collection[int]) -> list[str]:
    """Return a line per row; the columns numbered in `left` are aligned there, others right."""
    widths = [max(map(_columns, column)) for column in zip(*rows)]
    lines = []
    for row in rows:
        cells = []
        for number, (cell, width) in enumerate(zip(row, widths)):
            space = " " * (width - _columns(cell))
            cells.append(cell + space if number in left else space + cell)
        lines.append("  ".join(cells).rstrip())
    return lines


def _columns(text: str) -> int:
    """Return the width of a string in terminal columns; Chinese characters occupy two."""
    return len(text) + sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
