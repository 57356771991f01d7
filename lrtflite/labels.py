"""Labels: the names of classes, checked and in one form."""

from __future__ import annotations

import unicodedata
from typing import Any, Union

import numpy as np

from lrtflite.arguments import shown
from lrtflite.errors import InputError

Label = Union[str, int, np.integer[Any]]  # a name; 3 is the name "3"
# Maximum number of characters in a label.
MOST_CHARACTERS = 200


def label_name(label: object) -> str:
    """Return a label as a name, or raise InputError; the name of a number is its digits."""
    return check_label(str(label) if _is_number(label) else label)


def check_label(label: object) -> str:
    """Return a name in Unicode's form NFC, or raise InputError.

    An accented letter may be one character or two. Both look the same and must be the same label.
    """
    if not isinstance(label, str) or not label.strip() or not label.isprintable():
        raise InputError(
            f"Expected a label of one line of text, got {shown(label)}; give a name or a number"
        )
    composed = unicodedata.normalize("NFC", label)
    if len(composed) > MOST_CHARACTERS:
        raise InputError(
            f"Expected a label of at most {MOST_CHARACTERS} characters, got {len(composed)}: "
            f"{composed[:30]!r}...; use a shorter name"
        )
    return composed


def _is_number(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
