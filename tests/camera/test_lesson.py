"""A lesson: a session whose frames are handed over one by one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from learning import fingerprint, frames_of
from lrtflite import InputError, Learner, Lesson, LrtfliteError
from lrtflite.errors import SessionCancelled

Open = Callable[..., Learner]


def over(lesson: Lesson) -> Lesson:
    lesson.wait(60)
    assert lesson.is_over
    return lesson


def test_a_lesson_learns_what_it_was_given(open_learner: Open) -> None:
    plain = open_learner(seed=0)
    plain.learn(frames_of(0, 12), "mug")
    learner = open_learner(seed=0)
    lesson = Lesson(learner, "mug")
    for frame in frames_of(0, 12):
        lesson.add(frame)
    assert not lesson.is_over
    assert lesson.report is None
    assert learner.learned == ()
    lesson.finish()
    lesson.finish()
    report = over(lesson).report
    assert report is not None
    assert (report.frames, report.labels) == (12, ("mug",))
    assert (lesson.frames, lesson.extracted, lesson.error) == (12, 12, None)
    assert fingerprint(learner) == fingerprint(plain)


def test_a_slot_is_taught_again(open_learner: Open) -> None:
    learner = open_learner()
    learner.learn(frames_of(0, 4), "mug")
    lesson = Lesson(learner, slot=0)
    lesson.add(frames_of(0, 1)[0])
    lesson.finish()
    report = over(lesson).report
    assert report is not None
    assert report.labels == ("mug",)


def test_a_buffer_may_be_reused_at_once(open_learner: Open) -> None:
    learner, seen = open_learner(), []
    lesson = Lesson(learner, "mug", on_latent=lambda latent: seen.append(latent.copy()))
    buffer = frames_of(0, 1)[0]
    expected = learner.extract(buffer)[0]
    frame = buffer.copy()
    for _ in range(8):
        buffer[:] = frame
        lesson.add(buffer)
        buffer[:] = 0
    lesson.finish()
    over(lesson)
    assert len(seen) == 8
    assert all(np.array_equal(latent, expected) for latent in seen)


def test_frames_are_offered_at_their_rate_until_the_time_is_over(
    open_learner: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr("lrtflite.camera.lesson.time.monotonic", lambda: clock[0])
    lesson = Lesson(open_learner(), "mug", seconds=2, fps=5)
    frame, taken = frames_of(0, 1)[0], []
    for tick in range(30):
        clock[0] = 100 + tick / 10
        if lesson.offer(frame):
            taken.append(tick)
    # Five of ten a second for two seconds. 100.2 - 100 is a little less than 1 / 5 in floats.
    assert len(taken) in (9, 10)
    assert max(taken) < 20
    assert all(later - earlier >= 2 for earlier, later in zip(taken, taken[2:]))
    over(lesson)
    assert lesson.report is not None
    assert lesson.report.frames == len(taken) == lesson.frames


def test_a_cancelled_lesson_leaves_no_trace(open_learner: Open, tmp_path: Path) -> None:
    learner = open_learner(tmp_path / "state")
    before = fingerprint(learner)
    lesson = Lesson(learner, "mug")
    for frame in frames_of(0, 5):
        lesson.add(frame)
    lesson.cancel()
    over(lesson)
    assert lesson.is_cancelled
    assert isinstance(lesson.error, SessionCancelled)
    assert lesson.report is None
    assert fingerprint(learner) == before
    # Another lesson can begin at once.
    again = Lesson(learner, "mug")
    again.add(frames_of(0, 1)[0])
    again.finish()
    assert over(again).report is not None


def test_nothing_is_taken_after_the_end(open_learner: Open) -> None:
    lesson = Lesson(open_learner(), "mug")
    frame = frames_of(0, 1)[0]
    lesson.add(frame)
    lesson.finish()
    assert not lesson.offer(frame)
    with pytest.raises(InputError, match=r"^Expected a lesson that is still recording, got one"):
        lesson.add(frame)
    over(lesson)
    assert lesson.frames == 1


@pytest.mark.parametrize(
    "bad",
    [
        np.zeros((4, 4, 3), np.uint8),
        np.zeros((128, 128, 3), np.float32),
        np.zeros((2, 128, 128, 3), np.uint8),
        "mug.jpg",
    ],
)
def test_a_bad_frame_is_refused_and_the_lesson_goes_on(open_learner: Open, bad: Any) -> None:
    lesson = Lesson(open_learner(), "mug")
    with pytest.raises(InputError):
        lesson.add(bad)
    lesson.add(frames_of(0, 1)[0])
    lesson.finish()
    report = over(lesson).report
    assert report is not None
    assert report.frames == 1


def test_what_cannot_be_learned_is_an_error_of_the_lesson(open_learner: Open) -> None:
    learner = open_learner()
    assert isinstance(over(Lesson(learner, "unknown")).error, InputError)
    assert isinstance(over(Lesson(learner, slot=1000)).error, InputError)
    empty = Lesson(learner, "mug")
    empty.finish()
    assert "at least one frame" in str(over(empty).error)
    assert learner.labels == (None,) * len(learner.labels)


def test_one_lesson_at_a_time(open_learner: Open) -> None:
    learner = open_learner()
    first = Lesson(learner, "mug")
    first.add(frames_of(0, 1)[0])
    while not first.extracted:
        time.sleep(0.01)
    second = over(Lesson(learner, "ball"))
    assert isinstance(second.error, LrtfliteError)
    assert "running already" in str(second.error)
    first.finish()
    assert over(first).report is not None
    assert learner.learned == ("mug",)


@pytest.mark.parametrize("options", [{"seconds": 0}, {"seconds": -1}, {"fps": 0}, {"fps": "5"}])
def test_a_lesson_needs_time(open_learner: Open, options: dict[str, Any]) -> None:
    [name] = options
    with pytest.raises(InputError, match=rf"^Expected {name} as a number of at least 0\.001, got"):
        Lesson(open_learner(), "mug", **options)


def test_latents_are_shown_while_the_lesson_records(open_learner: Open) -> None:
    learner = open_learner()
    seen: list[tuple[int, np.ndarray]] = []
    lesson = Lesson(
        learner, "mug", on_latent=lambda latent: seen.append((threading.get_ident(), latent))
    )
    frames = frames_of(0, 3)
    for frame in frames:
        lesson.add(frame)
    while lesson.extracted < 3:
        time.sleep(0.01)
    assert not lesson.is_over
    lesson.finish()
    over(lesson)
    assert np.array_equal(np.stack([latent for _, latent in seen]), learner.extract(frames))
    assert threading.get_ident() not in {thread for thread, _ in seen}
    with pytest.raises(ValueError, match="read-only"):
        seen[0][1][:] = 0


def test_an_error_in_on_latent_ends_the_session(open_learner: Open) -> None:
    learner = open_learner()

    def refuse(latent: np.ndarray) -> None:
        raise RuntimeError("not this one")

    with pytest.raises(RuntimeError, match="not this one"):
        learner.learn(frames_of(0, 3), "mug", on_latent=refuse)
    assert (learner.learned, learner.sessions) == ((), 0)
    lesson = Lesson(learner, "mug", on_latent=refuse)
    lesson.add(frames_of(0, 1)[0])
    lesson.finish()
    assert str(over(lesson).error) == "not this one"
    assert learner.sessions == 0
