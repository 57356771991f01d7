"""Labels: the names of classes, checked and in one form.

`new_label` checks a name that somebody gives to a class. `stored_label` checks one that a bundle or
a state has already; it lets more pass, and `label_warnings` tells the user.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Union

import numpy as np

from lrtflite.arguments import shown
from lrtflite.errors import InputError

# The label of a frame that is unlike everything taught.
UNKNOWN = "unknown"
# The label of the background: frames of a place without a thing, which are answered as unknown.
BACKGROUND = "nothing here"
Label = Union[str, int, np.integer[Any]]  # a name; 3 is the name "3"
# Maximum number of characters in a label.
MAX_CHARACTERS = 200
# Categories of characters that act on a terminal or end a line, and of halves of a character.
_CONTROLS = ("Cc", "Zl", "Zp", "Cs")
# Printable characters that show nothing: fillers, blanks and variation selectors.
_SHOW_NOTHING = frozenset(
    map(
        chr,
        (
            *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, 0x1D159),
            *range(0x180B, 0x1810),
            *range(0xFE00, 0xFE10),
            *range(0xE0100, 0xE01F0),
        ),
    )
)


def label_name(label: object) -> str:
    """Return a label as a name, or raise InputError; the name of a number is its digits."""
    return check_label(str(label) if _is_number(label) else label)


def check_label(label: object) -> str:
    """Return a name in Unicode's form NFC, or raise InputError.

    An accented letter may be one character or two. Both look the same and must be the same label.
    """
    if not isinstance(label, str) or not label.strip() or not label.isprintable():
        raise InputError(
            f"Expected a label of one line of text, got {shown(label)}", "give a name or a number"
        )
    return _composed(label)


def new_label(label: object, taken: Iterable[str | None] = ()) -> str:
    """Return the name of a new class, or raise InputError.

    A name must be visible, look unlike every other in `taken`, and be neither the answer for
    a frame that is unlike everything taught nor the label of the background.
    """
    name = label_name(label)
    looks = appearance(name)
    if not looks:
        raise InputError(
            f"Expected a label that is visible, got {name!a}", "give a name with letters"
        )
    if looks == UNKNOWN:
        raise InputError(
            f"Expected a label other than {UNKNOWN!r}, which is the answer for a frame "
            f"unlike everything taught, got {_quoted(name)}",
            "choose another name",
        )
    if looks == BACKGROUND:
        raise InputError(
            f"Expected a label other than {BACKGROUND!r}, which is that of the background, got "
            f"{_quoted(name)}",
            "teach it with background=True, or choose another name",
        )
    for other in taken:
        if other is not None and other != name and appearance(other) == looks:
            raise InputError(
                f"Expected a label that looks unlike {_quoted(other)}, got {_quoted(name)}, which "
                "differs in white space only",
                f"give {_quoted(other)} or choose another name",
            )
    return name


def new_labels(labels: Iterable[object]) -> tuple[str, ...]:
    """Return the names of several new classes, or raise InputError."""
    names: list[str] = []
    for label in labels:
        names.append(new_label(label, names))
    return tuple(names)


def stored_label(label: object) -> str:
    """Return a label of a bundle or a state in Unicode's form NFC, or raise InputError.

    Unlike a new one, it may be invisible, but it has no control characters.
    """
    if not isinstance(label, str) or not label or any(map(_is_control, label)):
        raise InputError(
            f"Expected a label of one line of text, got {shown(label)}", "give a name or a number"
        )
    return _composed(label)


def label_warnings(labels: Sequence[str | None]) -> Iterator[str]:
    """Yield a line for each label of a bundle or a state that would be refused as a new one."""
    seen: dict[str, tuple[int, str]] = {}
    for slot, label in enumerate(labels):
        if label is None:
            continue
        looks = appearance(label)
        where = f"class slot {slot} has the label {_quoted(label)}"
        if not looks:
            yield f"{where}, which is invisible; rename it by its slot"
        elif looks == UNKNOWN:
            yield (
                f"{where}, which is also the answer for frames unlike everything taught; rename it"
            )
        elif looks in seen:
            other, name = seen[looks]
            yield f"{where}, which looks like {_quoted(name)} of class slot {other}; rename one"
        else:
            seen[looks] = slot, label


def appearance(label: str) -> str:
    """Return what can be seen of a label: no invisible characters, single spaces inside only."""
    spaced = (" " if each.isspace() else each for each in unicodedata.normalize("NFC", label))
    return " ".join("".join(each for each in spaced if not _is_invisible(each)).split())


def _is_invisible(character: str) -> bool:
    return character in _SHOW_NOTHING or not character.isprintable()


def _is_control(character: str) -> bool:
    return unicodedata.category(character) in _CONTROLS


def _composed(label: str) -> str:
    composed = unicodedata.normalize("NFC", label)
    if len(composed) > MAX_CHARACTERS:
        raise InputError(
            f"Expected a label of at most {MAX_CHARACTERS} characters, got {len(composed)}: "
            f"{composed[:30]!r}...",
            "use a shorter name",
        )
    return composed


def _quoted(label: str) -> str:
    """Return a label in quotes, with invisible characters as escapes."""
    return ascii(label) if any(map(_is_invisible, label)) else repr(label)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
