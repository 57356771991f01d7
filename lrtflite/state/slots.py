"""Class slots: the label of each output of the head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from lrtflite.arguments import printable, whole_number
from lrtflite.errors import InputError, NoFreeSlot
from lrtflite.labels import BACKGROUND, Label, label_name, new_label

Labels = Union[Label, Sequence[Label], NDArray[Any]]
SlotNumbers = Union[int, Sequence[int], NDArray[np.integer[Any]]]


@dataclass(frozen=True)
class Slots:
    """The label of each slot, None for a free one. A change returns a new value.

    `background` is the slot of the background, whose frames are answered as unknown; None if it
    was not taught.

    Methods that take a label, or the number of a slot as a keyword, raise InputError unless they
    get exactly one of the two.
    """

    labels: tuple[str | None, ...]
    background: int | None = None

    def __post_init__(self) -> None:
        taken = [label for label in self.labels if label is not None]
        if len(set(taken)) != len(taken):
            raise InputError(
                f"Expected distinct labels, got {', '.join(map(str, taken))}",
                "rename the duplicates",
            )

    def find(self, label: Label | None = None, *, slot: int | None = None) -> int:
        """Return the slot of a label, or `slot` itself, which may be free."""
        _check_one_given(label, slot)
        if slot is not None:
            return self._check_slot(slot)
        # A stored label may break the rules for new ones.
        name = label if isinstance(label, str) and label in self.labels else label_name(label)
        if name not in self.labels:
            taken = ", ".join(printable(other) for other in self.labels if other) or "none yet"
            raise InputError(f"Expected a known label ({taken}), got {name!r}", "give one of these")
        return self.labels.index(name)

    def place(self, label: Label | None = None, *, slot: int | None = None) -> tuple[int, Slots]:
        """Return the slot to teach. A new label takes the first free slot; a free slot gets one."""
        _check_one_given(label, slot)
        if slot is not None:
            number = self._check_slot(slot)
            return number, self if self.labels[number] else self._named(number, f"class {number}")
        name = label if isinstance(label, str) and label in self.labels else label_name(label)
        if name in self.labels:
            return self.labels.index(name), self
        name = new_label(name, self.labels)
        number = self._first_free(name)
        return number, self._named(number, name)

    def _first_free(self, name: str) -> int:
        if None not in self.labels:
            raise NoFreeSlot(
                f"No free slot for {name!r}: all {len(self.labels)} are taken",
                "forget a label, or convert a bundle with more --classes",
            )
        return self.labels.index(None)

    def place_background(self) -> tuple[NDArray[np.int32], Slots]:
        """Return the slot of the background as `place_all` does; the first time, a free one."""
        if self.background is not None:
            return np.array(self.background, np.int32), self
        if BACKGROUND in self.labels:
            raise InputError(
                f"Expected no class named {BACKGROUND!r}, which is the label of the background",
                "rename this class first",
            )
        number = self._first_free(BACKGROUND)
        return np.array(number, np.int32), replace(
            self._with(number, BACKGROUND), background=number
        )

    def place_all(
        self, labels: Labels | None = None, *, slot: SlotNumbers | None = None
    ) -> tuple[NDArray[np.int32], Slots]:
        """Return the slots to teach, int32: () for one label or slot, (n,) for a list of them."""
        _check_one_given(labels, slot)
        given: Any = labels if slot is None else slot
        is_one = not _is_list(given)
        slots, placed = self, []
        for each in [given] if is_one else given:
            number, slots = slots.place(each) if slot is None else slots.place(slot=each)
            placed.append(number)
        return np.array(placed[0] if is_one else placed, np.int32), slots

    def rename(
        self, label: Label | None = None, new: Label | None = None, *, slot: int | None = None
    ) -> Slots:
        number = self.find(label, slot=slot)
        if number == self.background:
            raise InputError(
                f"Expected a class to rename, got the background, {BACKGROUND!r}",
                "forget it, and teach its frames under another label",
            )
        others = (*self.labels[:number], *self.labels[number + 1 :])
        return self._named(number, new_label(new, others))

    def free(self, slot: int) -> Slots:
        if self.labels[slot] is None:
            raise InputError(
                f"Expected a slot that has a label, got {slot}, which is free", "give a taken slot"
            )
        freed = self._with(slot, None)
        return replace(freed, background=None) if slot == self.background else freed

    def _named(self, slot: int, name: str) -> Slots:
        if name in self.labels and self.labels.index(name) != slot:
            raise InputError(f"Expected a label that is not taken, got {name!r}", "choose another")
        return self._with(slot, name)

    def _with(self, slot: int, label: str | None) -> Slots:
        labels = list(self.labels)
        labels[slot] = label
        return replace(self, labels=tuple(labels))

    def _check_slot(self, slot: object) -> int:
        return whole_number("slot", slot, most=len(self.labels) - 1)


def broadcast_slots(placed: NDArray[np.int32], count: int) -> NDArray[np.int32]:
    """Return the slots (count,) of all patterns of a session, from those of `place_all`."""
    if placed.ndim and len(placed) != count:
        raise InputError(
            f"Expected one label per frame, got {len(placed)} for {count} frames",
            "give one for each",
        )
    return np.full(count, placed, np.int32)


def _check_one_given(label: object, slot: object) -> None:
    if (label is None) == (slot is None):
        got = "neither" if label is None else "both"
        raise InputError(
            f"Expected a label or the number of a slot as slot=, got {got}", "give one of them"
        )


def _is_list(given: object) -> bool:
    if isinstance(given, np.ndarray):
        return given.ndim == 1
    return isinstance(given, Sequence) and not isinstance(given, (str, bytes))
