"""`?classes=`: some classes of a data set, by name or by number of classes.

?classes=mug,stapler    these two
?classes=20             the first 20, in the data set's own order
?classes=20,            the class named 20; a comma makes the value a list of names
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from lrtflite.data.listing import first_few
from lrtflite.errors import DataError

# Maximum number of classes that a message names; the rest are counted.
LISTED = 8


@dataclass(frozen=True)
class ClassChoice:
    """The requested classes: their number, or their names in Unicode's form NFC."""

    wanted: int | tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> ClassChoice:
        """Read the value of `?classes=`; raise DataError if it is neither names nor a count."""
        if text.isascii() and text.isdecimal():
            if int(text) == 0:
                raise DataError(
                    "Expected classes=N with N of at least 1, got 0", "leave it out for all classes"
                )
            return cls(int(text))
        names = tuple(
            unicodedata.normalize("NFC", name.strip()) for name in text.split(",") if name.strip()
        )
        if not names:
            raise DataError(
                f"Expected names or a number after classes=, got {text!r}",
                "write classes=mug,stapler or classes=20",
            )
        for name in names:
            if names.count(name) > 1:
                raise DataError(
                    f"Expected each name once after classes=, got {name!r} twice", "remove one"
                )
        return cls(names)

    def pick(self, classes: Sequence[str], *, of: str) -> tuple[int, ...]:
        """Return the labels of the chosen classes, ascending; `of` names the data set.

        Raise DataError for a class that the data set lacks, or if it has fewer classes.
        """
        if isinstance(self.wanted, int):
            if self.wanted > len(classes):
                raise DataError(
                    f"Expected classes=N with N of at most {len(classes)}, the classes of {of}, "
                    f"got {self.wanted}",
                    f"{_smaller(self.wanted, classes)}",
                )
            return tuple(range(self.wanted))
        for name in self.wanted:
            if name not in classes:
                raise DataError(
                    f"Expected classes of {of}, got {name!r}", f"{_near(name, classes)}"
                )
        return tuple(label for label, name in enumerate(classes) if name in self.wanted)


def pick_classes(choice: ClassChoice | None, classes: Sequence[str], *, of: str) -> tuple[int, ...]:
    """Return the labels of the chosen classes, ascending; all labels if `choice` is None."""
    return tuple(range(len(classes))) if choice is None else choice.pick(classes, of=of)


def _smaller(count: int, classes: Sequence[str]) -> str:
    if str(count) in classes:
        return f"for the class named {count} write classes={count},"
    return "give a smaller number"


def _near(name: str, classes: Sequence[str]) -> str:
    """Suggest the likeliest classes, or list the available ones."""
    folded = {known.casefold(): known for known in classes}
    near = difflib.get_close_matches(name.casefold(), folded, n=3)
    # `o6` is too short to count as close to `o6 mobile phone`, so compare first words as well.
    near += [key for key in folded if key.split()[:1] == [name.casefold()] and key not in near]
    if near:
        return f"did you mean {' or '.join(repr(folded[key]) for key in near[:3])}?"
    return f"choose from {first_few(classes, LISTED)}"
