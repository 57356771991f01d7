"""Labels and class slots."""

from __future__ import annotations

import numpy as np
import pytest

from lrtflite.errors import InputError, NoFreeSlot
from lrtflite.slots import Slots

SLOTS = Slots(("cup", None, "ball", None))


def test_a_new_label_takes_the_first_free_slot() -> None:
    slot, slots = SLOTS.place("shoe")
    assert (slot, slots.labels) == (1, ("cup", "shoe", "ball", None))
    assert SLOTS.labels == ("cup", None, "ball", None)


def test_one_label_each() -> None:
    placed, slots = SLOTS.place_all(["ball", "shoe", "ball", "hat", 0], 5)
    np.testing.assert_array_equal(placed, [2, 1, 2, 3, 0])
    assert slots.labels == ("cup", "shoe", "ball", "hat")


def test_a_free_slot_by_number_gets_a_name() -> None:
    slot, slots = SLOTS.place(3)
    assert (slot, slots.labels[3]) == (3, "class 3")


def test_errors_say_what_to_do() -> None:
    with pytest.raises(NoFreeSlot, match="all 4 are taken; forget a label"):
        SLOTS.place_all(["a", "b", "c"], 3)
    with pytest.raises(InputError, match=r"slot of 0\.\.3, got 4"):
        SLOTS.place(4)
    with pytest.raises(InputError, match=r"slot of 0\.\.3, got -1"):
        SLOTS.place(-1)
    with pytest.raises(InputError, match=r"known label \(cup, ball\), got 'hat'"):
        SLOTS.find("hat")
    with pytest.raises(InputError, match="2 for 3 frames"):
        SLOTS.place_all(["cup", "ball"], 3)
    with pytest.raises(InputError, match="one line of text"):
        SLOTS.rename("cup", "  ")
    with pytest.raises(InputError, match="not taken, got 'ball'"):
        SLOTS.rename("cup", "ball")
    with pytest.raises(InputError, match="distinct"):
        Slots(("cup", "cup"))


@pytest.mark.parametrize("label", [None, 1.5, True, b"cup", "two\nlines"])
def test_labels_are_names_or_numbers(label: object) -> None:
    with pytest.raises(InputError, match="Expected a label"):
        SLOTS.place_all([label], 1)  # type: ignore[list-item]
    with pytest.raises(InputError, match="Expected a label"):
        SLOTS.place_all(label, 1)  # type: ignore[arg-type]


def test_a_label_has_one_form() -> None:
    """An accented letter is one character or two; both are the same label."""
    one, two = "caf\u00e9", "cafe\u0301"
    slot, slots = SLOTS.place(two)
    assert slots.labels[slot] == one
    assert slots.find(two) == slots.find(one) == slots.place(two)[0] == slot
    assert slots.rename("cup", "n\u0303").labels[0] == "\u00f1"
    with pytest.raises(InputError, match="not taken"):
        slots.rename("cup", two)


def test_a_label_is_no_novel() -> None:
    assert SLOTS.place("x" * 200)[0] == 1
    with pytest.raises(InputError, match=r"at most 200 characters, got 1000: 'xxx") as caught:
        SLOTS.place("x" * 1000)
    assert len(str(caught.value)) < 150


def test_a_list_of_lists_is_no_list_of_labels() -> None:
    with pytest.raises(InputError, match="Expected a label"):
        SLOTS.place_all([["cup"], ["cup", "ball"]], 2)  # type: ignore[list-item]
