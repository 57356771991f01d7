"""Metrics against figures worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lrtflite.errors import InputError
from lrtflite.workbench.metrics import (
    accuracy,
    class_accuracy,
    confusion_matrix,
    forgetting,
    percentiles,
)

TRUTH = [0, 0, 0, 1, 1, 2, 2, 2]
PREDICTED = [0, 0, 1, 1, 1, 0, 2, 1]


def test_accuracy_over_everything_and_over_some_classes() -> None:
    assert accuracy(PREDICTED, TRUTH) == 5 / 8
    assert accuracy(PREDICTED, TRUTH, classes={0, 1}) == 4 / 5
    assert accuracy(PREDICTED, TRUTH, classes=[2]) == pytest.approx(1 / 3)


def test_confusion_matrix_has_a_row_per_true_class() -> None:
    expected = [[2, 1, 0, 0], [0, 2, 0, 0], [1, 1, 1, 0], [0, 0, 0, 0]]
    matrix = confusion_matrix(PREDICTED, TRUTH, classes=4)
    np.testing.assert_array_equal(matrix, expected)
    assert matrix.dtype == np.int64


def test_class_accuracy_is_nan_where_nothing_was_tested() -> None:
    shares = class_accuracy(PREDICTED, TRUTH, classes=4)
    np.testing.assert_allclose(shares, [2 / 3, 1, 1 / 3, np.nan])


def test_forgetting_by_hand() -> None:
    history = [
        [0.8, 0.9, 0.0, 0.0],
        [0.6, 0.5, 0.7, 0.0],
        [0.9, 0.6, 0.4, 1.0],
    ]
    # Class 0 is at its best at the end: 0. Class 1 had 0.9 before it was taught, which does not
    # count; then 0.5, 0.6: 0. Class 2 fell by 0.3. Class 3 came last.
    assert forgetting(history, [0, 1, 1, 2]) == pytest.approx((0 + 0 + 0.3) / 3)
    # Taught at the start, class 1 fell by 0.3 too; class 3 was never taught.
    assert forgetting(history, [0, 0, 1, None]) == pytest.approx((0 + 0.3 + 0.3) / 3)


def test_nothing_to_forget_is_zero() -> None:
    assert forgetting([[0.5, 0.5]], [0, 0]) == 0.0
    assert forgetting([[0.5, math.nan], [0.5, math.nan]], [0, 0]) == 0.0


def test_percentiles_lie_between_neighbours() -> None:
    assert percentiles([4.0, 1.0, 2.0, 3.0]) == {"p50": 2.5, "p95": pytest.approx(3.85), "n": 4}
    assert percentiles([7]) == {"p50": 7.0, "p95": 7.0, "n": 1}


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match=r"got \(1,\) and \(2,\)"):
        accuracy([1], [1, 2])
    with pytest.raises(InputError, match=r"Expected at least one test pattern, got none"):
        accuracy([], [])
    with pytest.raises(InputError, match=r"of the classes \[7\], got none"):
        accuracy(PREDICTED, TRUTH, classes=[7])
    with pytest.raises(InputError, match="Expected labels from 0 to 1, got 0 to 2"):
        confusion_matrix(PREDICTED, TRUTH, classes=2)
    with pytest.raises(InputError, match=r"Expected a history of shape \(sessions, 3\)"):
        forgetting([[0.1, 0.2]], [0, 0, 0])
    with pytest.raises(InputError, match="Expected at least one measurement"):
        percentiles([])
