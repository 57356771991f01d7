"""Write a number with its noun, in the singular or the plural."""

from __future__ import annotations


def counted(number: int, one: str, several: str = "") -> str:
    """Return `1 class` or `1,234 classes`; `several` is the plural, if it is not `one` and an s."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def classes_text(number: int) -> str:
    """Return `1 class` or `1,234 classes`."""
    return counted(number, "class", "classes")
