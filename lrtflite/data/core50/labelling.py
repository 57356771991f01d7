"""The classes of CORe50: its 50 objects, or its 10 categories of five objects each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lrtflite.data.choice import ClassChoice, pick_classes
from lrtflite.data.core50.lists import CATEGORIES, CLASSES
from lrtflite.errors import DataError

# Objects of one category.
PER_CATEGORY = len(CLASSES) // len(CATEGORIES)
KINDS = ("objects", "categories")


@dataclass(frozen=True)
class Labelling:
    """The names of the classes, and the class of each object that has one, by number from 0."""

    classes: tuple[str, ...]
    label_of: Mapping[int, int]

    @classmethod
    def of(cls, kind: str, choice: ClassChoice | None = None, *, name: str) -> Labelling:
        """Return the chosen objects or categories of the data set `name`."""
        if kind not in KINDS:
            raise DataError(
                f"Expected labels={' or '.join(KINDS)}, got {kind!r}",
                "write for example ?labels=categories",
            )
        names: Sequence[str] = CLASSES if kind == "objects" else CATEGORIES
        each = 1 if kind == "objects" else PER_CATEGORY
        chosen = pick_classes(choice, names, of=name)
        label_of = {
            each * number + place: label
            for label, number in enumerate(chosen)
            for place in range(each)
        }
        return cls(tuple(names[number] for number in chosen), label_of)


OBJECTS = Labelling.of("objects", name="core50")
