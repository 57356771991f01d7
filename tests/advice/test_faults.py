"""Faulty patterns and pictures among vectors made by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from lrtflite.advice.diagnose import confusions
from lrtflite.advice.faults import (
    count_different,
    count_different_vectors,
    mislabelled,
    repeats,
)
from lrtflite.session.diagnosis import NOT_JUDGED


def on_circle(*degrees: float) -> NDArray[np.float64]:
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def slots(*numbers: int) -> NDArray[np.int32]:
    return np.array(numbers, np.int32)


def test_a_pattern_among_those_of_another_class_is_mislabelled() -> None:
    """Row 5 is called 3, at 90 degrees, where all of class 7 are."""
    vectors = on_circle(-4, -2, 0, 2, 4, 90, 86, 88, 92, 94)
    assert mislabelled(vectors, slots(3, 3, 3, 3, 3, 3, 7, 7, 7, 7)) == [(5, 7)]


def test_swapped_patterns_are_found_in_both_classes() -> None:
    vectors = on_circle(0, 2, 4, 6, 8, 90, 92, 94, 96, 98)
    classes = slots(0, 0, 0, 0, 1, 1, 1, 1, 1, 0)
    assert mislabelled(vectors, classes) == [(4, 0), (9, 1)]


def test_a_pattern_between_two_classes_is_not_mislabelled() -> None:
    """Row 5, at 55 degrees, is nearer to the class at 90, but by less than the margin.

    cos 35 - cos 55 = 0.25 is less than 0.6 of 1 - cos 90 = 1.
    """
    vectors = on_circle(-4, -2, 0, 2, 4, 55, 86, 88, 90, 92, 94)
    assert mislabelled(vectors, slots(0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1)) == []


def test_a_lone_view_whose_neighbours_are_of_its_class_is_not_mislabelled() -> None:
    """Class 0 has a second side at 90 degrees, next to class 1 at 100."""
    vectors = on_circle(0, 1, 2, 3, 4, 5, 88, 89, 90, 91, 99, 100, 101)
    classes = slots(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1)
    assert mislabelled(vectors, classes) == []


def test_small_classes_are_skipped() -> None:
    vectors = on_circle(90, 0, 86, 88, 92, 94)
    classes = slots(0, 0, 1, 1, 1, 1)
    assert mislabelled(vectors, classes, least=2) == [(0, 1)]
    assert mislabelled(vectors, classes, least=3) == []


@pytest.mark.parametrize("rows", [0, 1, 4])
def test_one_class_has_nothing_to_be_taken_for(rows: int) -> None:
    assert mislabelled(on_circle(*range(rows)).reshape(rows, 2), slots(*[2] * rows)) == []


# Thumbnails of two cells, and mean colours.
LIGHT, DARK_SIDE = [1.0, -1.0], [-1.0, 1.0]
RED, BLUE = [200.0, 20.0, 20.0], [20.0, 20.0, 200.0]


def rows(*values: list[float]) -> NDArray[np.float32]:
    return np.array(values, np.float32)


def test_a_repeat_names_the_first_picture_like_it() -> None:
    thumbnails = rows(LIGHT, DARK_SIDE, LIGHT, [1.0, -0.99], LIGHT)
    colours = rows(RED, RED, RED, RED, BLUE)
    # The fourth differs by 0.007 from the first; the last is blue.
    assert repeats(thumbnails, colours, [None] * 5) == [(2, 0), (3, 0)]
    assert count_different(thumbnails, colours) == 3


def test_frames_of_one_video_may_be_alike() -> None:
    thumbnails, colours = rows(LIGHT, LIGHT, LIGHT, LIGHT), rows(RED, RED, RED, RED)
    assert repeats(thumbnails, colours, [5, 5, 6, None]) == [(2, 0), (3, 0)]


def test_different_vectors_are_counted() -> None:
    vectors = on_circle(0, 0, 60, 60.001, 120)
    assert count_different_vectors(vectors, least=1e-5) == 3


NAMES = ["mug", "cup", "hat"]


def test_confusions_by_hand() -> None:
    classes = slots(*[0] * 20, *[1] * 10, *[2] * 4)
    answers = classes.copy()
    answers[[3, 7]] = 1  # 2 of 20 mugs, a tenth
    answers[20] = 2  # one of ten cups
    answers[[30, 31, 32]] = 0  # 3 of 4 hats
    found = confusions(answers, classes, NAMES, [f"{row}.png" for row in range(34)])
    assert [(each.label, each.answer, each.frames, each.of) for each in found] == [
        ("hat", "mug", 3, 4),
        ("mug", "cup", 2, 20),
    ]
    assert found[1].pictures == ("3.png", "7.png")


def test_rare_confusions_and_missing_answers_are_left_out() -> None:
    classes = slots(*[0] * 21)
    answers = classes.copy()
    answers[:2] = 1  # less than a tenth
    answers[2:12] = NOT_JUDGED
    assert confusions(answers, classes, NAMES) == []
