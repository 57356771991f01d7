"""The thresholds of unknown, and the one that is recommended."""

from __future__ import annotations

import numpy as np
import pytest

from lrtflite.errors import InputError
from lrtflite.workbench.unknown import (
    SHARES,
    THRESHOLDS,
    UnknownAnswers,
    interval,
    unknown_answers,
    unknown_line,
)

# Twenty known frames: two below 0.1 (a tenth), one of them below 0.05.
KNOWN = [0.03, 0.07, *[0.9] * 18]


def counts(found: UnknownAnswers) -> dict[float, tuple[int, int]]:
    return {each.value: (each.refused, each.caught) for each in found.thresholds}


def test_each_threshold_counts_frames_below_it() -> None:
    found = unknown_answers(KNOWN, [0.005, 0.05, 0.4])
    assert (found.known, found.unknown) == (20, 3)
    # 0.05 is not below 0.05.
    assert counts(found) == {
        0.01: (0, 1),
        0.02: (0, 1),
        0.05: (1, 1),
        0.1: (2, 2),
        0.15: (2, 2),
        0.2: (2, 2),
        0.3: (2, 2),
        0.5: (2, 3),
    }


def test_a_threshold_compares_as_predict_does() -> None:
    """0.1 in float32 is above 0.1, so a frame with it is not unknown."""
    assert counts(unknown_answers(np.array([0.1], np.float32), []))[0.1] == (0, 0)


@pytest.mark.parametrize(
    ("known", "unknown", "most", "recommended"),
    [
        # 0.1 refuses exactly a tenth and catches most.
        (KNOWN, [0.005, 0.06, 0.4], 0.1, 0.1),
        # One more refused: 0.1 refuses 3 of 20, 0.05 only one.
        ([0.06, *KNOWN[:-1]], [0.005, 0.03, 0.06], 0.1, 0.05),
        # 0.02 to 0.1 catch the same: the smallest of them.
        (KNOWN, [0.015, 0.4], 0.1, 0.02),
        # Larger thresholds refuse no more here, but would refuse more than a tenth by design.
        ([0.9] * 20, [0.4], 0.1, 0.01),
        ([0.9] * 20, [0.4], 0.5, 0.5),
        # A limit that no threshold keeps, by refusals and by design.
        ([0.001] * 3 + [0.9] * 17, [0.001], 0.1, None),
        ([0.9] * 20, [0.001], 0.005, None),
        # Nothing unknown: the largest that refuses few enough.
        (KNOWN, [], 0.1, 0.1),
        ([0.06, *KNOWN[:-1]], [], 0.1, 0.05),
        # 29 of 100 is 0.29, though 0.29 * 100 is less than 29 in floating point.
        ([0.12] * 29 + [0.9] * 71, [], 0.29, 0.2),
    ],
)
def test_the_rule(
    known: list[float], unknown: list[float], most: float, recommended: float | None
) -> None:
    assert unknown_answers(known, unknown, most_refused=most).recommended == recommended


@pytest.mark.parametrize(
    ("known", "unknown", "recommended"),
    [
        # 0.55 refuses exactly a tenth and catches all; 0.6 refuses no more and catches no more.
        ([0.43, 0.53, *[0.9] * 18], [0.1, 0.3, 0.52], 0.55),
        # 0.45 is the smallest that catches both.
        ([0.43, 0.53, *[0.9] * 18], [0.1, 0.44], 0.45),
        # Nothing unknown: the threshold of the bundle, though a larger one would refuse no more.
        ([0.9] * 20, [], 0.46),
        # Three of twenty are below it: the next smaller one.
        ([0.455] * 3 + [0.9] * 17, [], 0.45),
        ([0.1] * 3 + [0.9] * 17, [0.1], None),
    ],
)
def test_the_rule_with_a_threshold_of_the_bundle(
    known: list[float], unknown: list[float], recommended: float | None
) -> None:
    found = unknown_answers(known, unknown, default=0.46)
    assert found.recommended == recommended
    assert [each.value for each in found.thresholds] == sorted([*THRESHOLDS, 0.46])
    assert found.default == 0.46


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    [
        # 0 of 12: from 0 to z2 / (n + z2) = 3.8416 / 15.8416.
        (0, 12, 0.0, 0.2425),
        (12, 12, 0.7575, 1.0),
        # 5 of 10: (0.5 + z2 / 20 -+ 1.96 sqrt(0.025 + z2 / 400)) / (1 + z2 / 10).
        (5, 10, 0.2366, 0.7634),
        (0, 0, 0.0, 1.0),
    ],
)
def test_the_interval_is_wilsons(count: int, total: int, low: float, high: float) -> None:
    assert interval(count, total) == pytest.approx((low, high), abs=1e-4)


def test_the_line_says_how_sure_it_is() -> None:
    assert unknown_line(unknown_answers([0.9] * 12, [0.005] * 5 + [0.4] * 5)) == (
        "unknown=0.01 refuses 0.0% (0 to 24%) of 12 known frames and catches 50.0% (24 to 76%) of "
        "10 unknown ones"
    )
    assert unknown_line(unknown_answers([0.9] * 12, [])) == (
        "unknown=0.1 refuses 0.0% (0 to 24%) of 12 known frames; what it catches is not measured, "
        "as every tested class is learned"
    )
    line = unknown_line(unknown_answers([0.001] * 5 + [0.9] * 5, [0.001]))
    assert line == (
        "unknown: every threshold refuses too many known frames: more than 10%, as 0.01 refuses "
        "50.0% (24 to 76%) of 10; leave it off, or teach in more places"
    )


def test_no_known_frame_is_an_error() -> None:
    with pytest.raises(InputError, match="at least one known frame, got none; add"):
        unknown_answers([], [0.5])
    with pytest.raises(InputError, match="Expected most_refused as a number from 0 to 1"):
        unknown_answers([0.5], [], most_refused=1.5)
    assert list(THRESHOLDS) == sorted(THRESHOLDS)
    assert list(SHARES) == sorted(SHARES)
