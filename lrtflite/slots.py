"""Class slots: which of the head's outputs carries which label."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Union, cast

import numpy as np
from numpy.typing import NDArray

from lrtflite.errors import InputError, NoFreeSlot

Label = Union[str, int]  # a name, or the number of a slot
MOST_CHARACTERS = 200


@dataclass(frozen=True)
class Slots:
    """The label of each slot, None where it is free. A change makes a new value."""

    labels: tuple[str | None, ...]

    def __post_init__(self) -> None:
        taken = [label for label in self.labels if label is not None]
        if len(set(taken)) != len(taken):
            raise InputError(f"Expected distinct labels, got {', '.join(map(str, taken))}")

    def find(self, label: Label) -> int:
        """The slot of a label that is there already."""
        if _is_number(label):
            if not 0 <= int(label) < len(self.labels):
                raise InputError(f"Expected a slot of 0..{len(self.labels) - 1}, got {label}")
            return int(label)
        if check_label(label) not in self.labels:
            known = ", ".join(name for name in self.labels if name is not None) or "none yet"
            raise InputError(f"Expected a known label ({known}), got {label!r}")
        return self.labels.index(check_label(label))

    def place(self, label: Label) -> tuple[int, Slots]:
        """The slot of a label, which takes the first free one if it is new."""
        if _is_number(label):
            slot = self.find(label)
            return slot, self if self.labels[slot] else self.rename(slot, f"class {slot}")
        name = check_label(label)
        if name in self.labels:
            return self.find(name), self
        if None not in self.labels:
            raise NoFreeSlot(
                f"No free slot for {label!r}: all {len(self.labels)} are taken; forget a label, "
                "or convert a bundle with more --classes"
            )
        slot = self.labels.index(None)
        return slot, self.rename(slot, name)

    def place_all(
        self, labels: Label | Sequence[Label], count: int
    ) -> tuple[NDArray[np.int32], Slots]:
        """Slots for `count` patterns, from one label for all or one each."""
        if isinstance(labels, str) or _is_number(labels):
            slot, slots = self.place(cast(Label, labels))
            return np.full(count, slot, np.int32), slots
        if (
            isinstance(labels, (bytes, int))
            or not isinstance(labels, (Sequence, np.ndarray))
            or (isinstance(labels, np.ndarray) and labels.ndim != 1)
        ):
            raise InputError(f"Expected a label, or a list with one per frame, got {labels!r}")
        if len(labels) != count:
            raise InputError(f"Expected one label per frame, got {len(labels)} for {count} frames")
        slots, placed = self, np.empty(count, np.int32)
        for i, label in enumerate(labels):
            placed[i], slots = slots.place(label)
        return placed, slots

    def rename(self, label: Label, new: str) -> Slots:
        new = check_label(new)
        slot = self.find(label)
        if new in self.labels and self.labels.index(new) != slot:
            raise InputError(f"Expected a label that is not taken, got {new!r}")
        return self._with(slot, new)

    def free(self, slot: int) -> Slots:
        return self._with(slot, None)

    def _with(self, slot: int, label: str | None) -> Slots:
        labels = list(self.labels)
        labels[slot] = label
        return replace(self, labels=tuple(labels))


def check_label(label: object) -> str:
    """Return a label in Unicode's form NFC, or raise InputError.

    An accent may be part of a letter or a character of its own; both look alike and are one label.
    """
    if not isinstance(label, str) or not label.strip() or not label.isprintable():
        raise InputError(f"Expected a label of one line of text, got {label!r}")
    composed = unicodedata.normalize("NFC", label)
    if len(composed) > MOST_CHARACTERS:
        raise InputError(
            f"Expected a label of at most {MOST_CHARACTERS} characters, got {len(composed)}: "
            f"{composed[:30]!r}...; use a shorter name"
        )
    return composed


def _is_number(label: object) -> bool:
    return isinstance(label, (int, np.integer)) and not isinstance(label, bool)
