"""Sessions whose frames show nothing, or the same thing again and again, say so."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
import pytest

from learning import TRAINING
from lrtflite import Learner
from lrtflite.frames.dull import DullFrames

BLACK = np.zeros((8, 8, 3), np.uint8)
BLUE = np.full((8, 8, 3), (0, 0, 200), np.uint8)


def noise(seed: int, size: int = 8) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (size, size, 3), dtype=np.uint8)


def warnings_of(frames: list[np.ndarray], labels: list[str]) -> list[str]:
    dull = DullFrames()
    look = dull.watching(lambda frame: frame)
    for frame in frames:
        assert look(frame) is frame
    return list(dull.warnings(labels))


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        ([BLACK] * 20, "20 of 20 frames of cup show one colour only; "),
        ([BLUE] * 5, "5 of 5 frames of cup show one colour only; "),
        ([BLUE] * 4, None),
        (
            [BLACK] * 3 + [noise(1), noise(2), noise(3)],
            "3 of 6 frames of cup show one colour only; ",
        ),
        ([noise(1)] * 20, "20 frames of cup are 1 picture again and again; "),
        ([noise(k // 10) for k in range(30)], "30 frames of cup are 3 pictures again and again; "),
        ([noise(k // 9) for k in range(36)], None),  # 10 a second, asked for 90
        ([BLACK] * 2 + [noise(k) for k in range(3)], None),
        ([noise(1)] * 4, None),
        ([noise(k // 2) for k in range(5)], None),
        ([noise(k) for k in range(20)], None),
    ],
)
def test_many_of_the_frames_are_worth_a_warning(
    frames: list[np.ndarray], expected: str | None
) -> None:
    found = warnings_of(frames, ["cup"] * len(frames))
    assert len(found) == (expected is not None)
    assert expected is None or found[0].startswith(expected)


def test_each_class_is_judged_by_itself() -> None:
    frames = [BLACK if k % 2 else noise(k) for k in range(20)]
    [line] = warnings_of(frames, ["hat" if k % 2 else "cup" for k in range(20)])
    assert line.startswith("10 of 10 frames of hat show one colour only")


def test_a_learner_reports_it_and_learns_all_the_same(
    open_learner: Callable[..., Learner], caplog: pytest.LogCaptureFixture
) -> None:
    learner = open_learner()
    size = learner.bundle.manifest.input_size
    with caplog.at_level(logging.WARNING, "lrtflite"):
        report = learner.learn([np.zeros((size, size, 3), np.uint8)] * 20, "hat", training=TRAINING)
    assert report.notes == tuple(record.getMessage() for record in caplog.records)
    assert report.notes[0].startswith("20 of 20 frames of hat show one colour only")
    assert learner.learned == ("hat",)
    frames = [noise(k, size) for k in range(6)]
    assert learner.learn(frames, "cup", training=TRAINING).notes == ()
