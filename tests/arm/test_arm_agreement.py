"""The comparison of two machines notices every kind of difference."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from agreement import TOLERANCE, compare
from arm_frames import CLASSES, TEST_FRAMES, draw_frames
from emulated import native_session

from lrtflite import Bundle

RESULT = {
    "losses": [0.5, 0.25],
    "answers": [
        {"probabilities": [[0.75, 0.25], [0.5, 0.5]], "labels": ["cup", "cup"]},
        {"probabilities": [[0.75, 0.25], [0.25, 0.75]], "labels": ["cup", "ball"]},
    ],
}


def changed(*path: str | int, to: Any) -> dict[str, Any]:
    """Return a copy of RESULT with one value changed."""
    result: dict[str, Any] = copy.deepcopy(RESULT)
    inner: Any = result
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = to
    return result


def test_results_within_the_tolerance_agree() -> None:
    assert compare(RESULT, RESULT).faults == ()
    close = compare(changed("losses", 1, to=0.25 + TOLERANCE / 2), RESULT)
    assert close.faults == ()
    assert close.loss == pytest.approx(TOLERANCE / 2)


def test_heads_without_losses_agree_by_their_answers() -> None:
    without = changed("losses", to=[None, None])
    assert compare(without, without).faults == ()
    # One machine that has losses and another that has none do not agree.
    assert compare(without, RESULT).faults == ("the losses differ by nan",)


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        (changed("losses", 0, to=0.5 - 2 * TOLERANCE), "the losses differ by 2.0e-04"),
        (changed("losses", 1, to=float("nan")), "the losses differ by nan"),
        (
            changed("answers", 1, "probabilities", 1, 0, to=0.25 + 3 * TOLERANCE),
            "the probabilities differ by 3.0e-04",
        ),
        (
            changed("answers", 0, "probabilities", 0, 0, to=float("nan")),
            "the probabilities differ by nan",
        ),
        (
            changed("answers", 1, "labels", 1, to="cup"),
            "session 2 predicts ['cup', 'cup'], not ['cup', 'ball']",
        ),
    ],
)
def test_one_changed_value_is_a_fault(found: dict[str, Any], fault: str) -> None:
    assert compare(found, RESULT).faults == (fault,)


def test_a_learning_rate_wrong_by_one_percent_is_seen(
    demo: Path, runtime: str, tmp_path: Path
) -> None:
    manifest = Bundle.open(demo).manifest
    frames = tmp_path / "frames.npz"
    draw_frames(frames, size=manifest.input_size)
    expected = native_session(demo, runtime, frames, tmp_path / "right")
    again = native_session(demo, runtime, frames, tmp_path / "again")
    lr = str(1.01 * manifest.training.values["lr"])
    wrong = native_session(demo, runtime, frames, tmp_path / "wrong", "--lr", lr)
    learned = [label for label in CLASSES for _ in range(TEST_FRAMES)]
    assert expected["answers"][-1]["labels"] == learned
    assert compare(again, expected).loss == 0
    found = compare(wrong, expected)
    assert found.loss > 10 * TOLERANCE
    assert found.probability > 10 * TOLERANCE
