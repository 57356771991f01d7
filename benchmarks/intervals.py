"""Differences of benchmarks in points, where each seed gives one figure per variant."""

from __future__ import annotations

from collections.abc import Sequence

from lrtflite.workbench.intervals import paired


def shown(values: Sequence[float], base: Sequence[float]) -> str:
    """Return a difference in points with its interval; bold where the interval excludes zero."""
    found = paired(values, base)
    text = f"{100 * found.mean:+.1f} ± {100 * found.half:.1f}"
    return f"**{text}**" if found.is_clear else text
