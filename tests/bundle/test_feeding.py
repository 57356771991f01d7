"""A feeding divides the places of mini-batches and counts them."""

from __future__ import annotations

from typing import Any

import pytest

from lrtflite.bundle.feeding import Composition, Feeding
from lrtflite.errors import InputError

ADVICE = "(choose one of these|give one of the two|change both)"


def feeding(batch_size: int, new_per_batch: int, **others: Any) -> Feeding:
    return Feeding(batch_size, new_per_batch, **{"epochs": 1, "least_steps": 1, **others})


def compose(batch_size: int, new_per_batch: int, *, new: int, stored: int) -> Composition:
    return feeding(batch_size, new_per_batch).composition(new=new, stored=stored)


def test_the_papers_composition() -> None:
    # Section 5.1: 128 x 300 / 1800 = 21 new, 107 replayed; and the app's 20 + 100 of 100 frames.
    assert compose(128, 21, new=300, stored=1500) == Composition(21, 107)
    app = feeding(120, 20)
    assert app.composition(new=100, stored=500) == Composition(20, 100)
    assert app.steps_per_epoch(new=100, stored=500) == 5


def test_a_short_session_has_its_share_and_no_more() -> None:
    # 128 x 25 / 1525 = 2.1: once through the session is once through the memory, 13 x 126 = 1638.
    assert compose(128, 21, new=25, stored=1500) == Composition(2, 126)
    assert feeding(128, 21).steps_per_epoch(new=25, stored=1500) == 13
    assert compose(128, 21, new=1, stored=1500) == Composition(1, 127)


def test_a_small_memory_keeps_its_places_and_an_empty_one_cannot() -> None:
    assert compose(120, 20, new=100, stored=3) == Composition(20, 100)
    assert compose(120, 20, new=6, stored=6) == Composition(20, 100)
    assert compose(120, 20, new=100, stored=0) == Composition(120, 0)
    assert compose(8, 8, new=5, stored=1) == Composition(7, 1)


def test_something_is_replayed_wherever_there_is_room() -> None:
    # 8 x 90 / 91 rounds to 8; nothing but new patterns would forget the stored one.
    assert compose(8, 8, new=90, stored=1) == Composition(7, 1)
    assert compose(2, 2, new=4, stored=1) == Composition(1, 1)
    assert compose(1, 1, new=4, stored=1) == Composition(1, 0)


def test_steps_are_whole_passes_and_at_least_so_many() -> None:
    # 100 new in places of 20 are 5 steps an epoch.
    assert feeding(120, 20, epochs=4).steps(new=100, stored=500) == 20
    assert feeding(120, 20, epochs=4, least_steps=24).steps(new=100, stored=500) == 24
    # Without repeats, patterns may not be repeated in further steps.
    once = feeding(8, 8, epochs=2, least_steps=24, repeats=False)
    assert once.steps(new=17, stored=0) == 6


def test_without_replays_every_place_is_new() -> None:
    alone = feeding(120, 20, replays=False)
    assert alone.composition(new=100, stored=500) == Composition(120, 0)
    assert alone.steps(new=121, stored=500) == 2


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"batch_size": 0}, "batch_size as a whole number of at least 1, got 0"),
        ({"new_per_batch": 9}, "new_per_batch as a whole number from 1 to 8, got 9"),
        ({"epochs": 0}, "epochs as a whole number from 1 to 100,000, got 0"),
        ({"least_steps": 1.5}, "least_steps as a whole number from 1 to 1,000,000, got 1.5"),
        ({"most_steps": 0}, "most_steps as a whole number from 1 to 1,000,000, got 0"),
        ({"least_steps": 9, "most_steps": 8}, "least_steps of at most most_steps, got 9 and 8"),
        ({"gathers": "all"}, "gathers as one of nothing, session, session and memory, got 'all'"),
        ({"replays": 1}, "replays as true or false, got 1"),
        ({"repeats": "no"}, "repeats as true or false, got 'no'"),
    ],
)
def test_invalid_feedings(wrong: dict[str, Any], said: str) -> None:
    values = {"batch_size": 8, "new_per_batch": 4, "epochs": 1, "least_steps": 1}
    with pytest.raises(InputError, match=f"^Expected {said}(; {ADVICE})?$"):
        Feeding(**{**values, **wrong})


def test_no_session_has_more_than_most_steps() -> None:
    few = Feeding(64, 10, 1, 8, most_steps=8)
    # In proportion, 1 of 64 places is new, so a pass over 25 patterns would take 25 steps.
    assert few.steps_per_epoch(new=25, stored=1500) == 25
    assert few.steps(new=25, stored=1500) == 8
    assert few.steps(new=2, stored=10) == 8
    assert Feeding(64, 10, 1, 8).steps(new=25, stored=1500) == 25
    assert few.with_numbers(epochs=100).steps(new=25, stored=1500) == 8
