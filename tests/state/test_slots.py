"""Labels and class slots."""

from __future__ import annotations

import numpy as np
import pytest

from lrtflite.errors import InputError, NoFreeSlot
from lrtflite.state.slots import Slots, broadcast_slots

SLOTS = Slots(("cup", None, "ball", None))


def test_a_new_label_takes_the_first_free_slot() -> None:
    slot, slots = SLOTS.place("shoe")
    assert (slot, slots.labels) == (1, ("cup", "shoe", "ball", None))
    assert SLOTS.labels == ("cup", None, "ball", None)


def test_one_label_each() -> None:
    placed, slots = SLOTS.place_all(["ball", "shoe", "ball", "hat", "cup"])
    np.testing.assert_array_equal(broadcast_slots(placed, 5), [2, 1, 2, 3, 0])
    assert slots.labels == ("cup", "shoe", "ball", "hat")


def test_one_label_for_all() -> None:
    placed, slots = SLOTS.place_all("ball")
    np.testing.assert_array_equal(broadcast_slots(placed, 3), [2, 2, 2])
    assert slots == SLOTS
    placed, slots = SLOTS.place_all(slot=1)
    np.testing.assert_array_equal(broadcast_slots(placed, 3), [1, 1, 1])
    assert slots.labels[1] == "class 1"


@pytest.mark.parametrize("three", [3, "3", np.int64(3), np.uint8(3)])
def test_a_number_is_a_name(three: int | str) -> None:
    slot, slots = SLOTS.place(three)
    assert (slot, slots.labels) == (1, ("cup", "3", "ball", None))
    assert slots.find(three) == slots.find("3") == slots.place(three)[0] == 1
    assert SLOTS.rename("cup", three).labels[0] == "3"
    placed, slots = SLOTS.place_all(np.array([3, 7, 3]))
    assert (placed.tolist(), slots.labels) == ([1, 3, 1], ("cup", "3", "ball", "7"))


def test_a_free_slot_by_number_gets_a_name() -> None:
    slot, slots = SLOTS.place(slot=3)
    assert (slot, slots.labels[3]) == (3, "class 3")
    placed, slots = SLOTS.place_all(slot=[3, 0, 3, 1])
    assert (placed.tolist(), slots.labels) == ([3, 0, 3, 1], ("cup", "class 1", "ball", "class 3"))
    assert SLOTS.rename(new="hat", slot=3).labels == ("cup", None, "ball", "hat")
    assert SLOTS.find(slot=2) == 2


def test_errors_say_what_to_do() -> None:
    with pytest.raises(NoFreeSlot, match="all 4 are taken; forget a label"):
        SLOTS.place_all(["a", "b", "c"])
    for wrong in (4, -1, True, "3", 1.0):
        with pytest.raises(InputError, match=f"slot as a whole number from 0 to 3, got {wrong!r}"):
            SLOTS.place(slot=wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"slot as a whole number .* got \[1\]"):
        SLOTS.place_all(slot=[[1], [2]])  # type: ignore[list-item]
    with pytest.raises(InputError, match="label or the number of a slot as slot=, got both"):
        SLOTS.place("cup", slot=0)
    with pytest.raises(InputError, match="got neither"):
        SLOTS.place_all()
    with pytest.raises(InputError, match="has a label, got 1, which is free"):
        SLOTS.free(1)
    with pytest.raises(InputError, match=r"known label \(cup, ball\), got 'hat'"):
        SLOTS.find("hat")
    with pytest.raises(InputError, match="2 for 3 frames"):
        broadcast_slots(SLOTS.place_all(["cup", "ball"])[0], 3)
    with pytest.raises(InputError, match="one line of text"):
        SLOTS.rename("cup", "  ")
    with pytest.raises(InputError, match="not taken, got 'ball'"):
        SLOTS.rename("cup", "ball")
    with pytest.raises(InputError, match="distinct"):
        Slots(("cup", "cup"))


@pytest.mark.parametrize("label", [None, 1.5, True, np.True_, np.float32(3), b"cup", "two\nlines"])
def test_labels_are_names_or_numbers(label: object) -> None:
    with pytest.raises(InputError, match="Expected a label"):
        SLOTS.place_all([label])  # type: ignore[list-item]
    with pytest.raises(InputError, match="Expected a label"):
        SLOTS.place_all(label)  # type: ignore[arg-type]


def test_a_label_has_one_form() -> None:
    """An accented letter may be one character or two; both are the same label."""
    one, two = "caf\u00e9", "cafe\u0301"
    slot, slots = SLOTS.place(two)
    assert slots.labels[slot] == one
    assert slots.find(two) == slots.find(one) == slots.place(two)[0] == slot
    assert slots.rename("cup", "n\u0303").labels[0] == "\u00f1"
    with pytest.raises(InputError, match="not taken"):
        slots.rename("cup", two)


def test_a_label_has_a_limited_length() -> None:
    assert SLOTS.place("x" * 200)[0] == 1
    with pytest.raises(InputError, match=r"at most 200 characters, got 1000: 'xxx") as caught:
        SLOTS.place("x" * 1000)
    assert len(str(caught.value)) < 150


def test_a_list_of_lists_is_not_a_list_of_labels() -> None:
    with pytest.raises(InputError, match="Expected a label"):
        SLOTS.place_all([["cup"], ["cup", "ball"]])  # type: ignore[list-item]
