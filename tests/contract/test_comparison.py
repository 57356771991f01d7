"""The comparison of a runtime's outputs with the golden vectors."""

from __future__ import annotations

import numpy as np
import pytest

from lrtflite.contract.comparison import compare, compare_changes

GOLDEN = {"change/a": np.full(3, 0.5, np.float32), "change/b": np.full(3, -0.5, np.float32)}
TENSORS = list(GOLDEN)


def changes(**off: float) -> dict[str, np.ndarray]:
    """Return the golden changes, each scaled by 1 plus its share in `off`."""
    return {
        name: values * np.float32(1 + off.get(name[len("change/") :], 0.0))
        for name, values in GOLDEN.items()
    }


@pytest.mark.parametrize(
    ("off", "passed", "seen"),
    [
        ({}, True, "2 tensors, differing by 0.0e+00"),
        ({"a": 0.01, "b": -0.02}, True, "2.0e-02 of their change at most (b)"),
        ({"a": 0.2, "b": 0.01}, False, "2.0e-01 of their change at most (a)"),
        # A change that was missed, and one in the wrong direction.
        ({"b": -1.0}, False, "1.0e+00 of their change at most (b)"),
        ({"a": -2.0}, False, "2.0e+00 of their change at most (a)"),
        ({"a": np.nan, "b": 0.001}, False, "NaN or infinity in a"),
        ({"a": 0.001, "b": np.inf}, False, "NaN or infinity in b"),
    ],
)
def test_each_tensor_must_change_as_the_golden_one(
    off: dict[str, float], passed: bool, seen: str
) -> None:
    check = compare_changes("state", "change/", TENSORS, changes(**off), GOLDEN)
    assert check.passed is passed
    assert seen in check.seen


def test_a_tensor_that_must_stay_may_not_move() -> None:
    golden = {**GOLDEN, "change/a": np.zeros(3, np.float32)}
    moved = {**changes(), "change/a": np.full(3, 1e-4, np.float32)}
    still = {**moved, "change/a": np.zeros(3, np.float32)}
    assert not compare_changes("state", "change/", TENSORS, moved, golden).passed
    assert compare_changes("state", "change/", TENSORS, still, golden).passed


def test_a_difference_of_bytes_does_not_wrap_around() -> None:
    """At `images` latents are uint8 frames: 1 - 3 must be -2, not 254."""
    found, expected = np.full(3, 1, np.uint8), np.full(3, 3, np.uint8)
    check = compare("latents", found, expected)
    assert not check.passed
    assert check.seen == "largest difference 2.0e+00"
