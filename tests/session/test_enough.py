"""A lesson has enough frames once its class is known well and told apart; made by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from learning import latents_of
from lrtflite.replay.codecs import LatentForm
from lrtflite.replay.memory import ReplayMemory
from lrtflite.session import enough as module
from lrtflite.session.diagnosis import to_vectors
from lrtflite.session.enough import (
    BLOCK,
    MIN_BLOCKS,
    ROWS,
    EnoughFrames,
    is_enough,
    stored_means,
)

FORM = LatentForm((256,), np.dtype(np.float32), np.dtype(np.float32), (0.0, 6.0))


def memory_of(*kinds: int, count: int = 20) -> ReplayMemory:
    """Return a memory in which slot k has latents of `kinds[k]`."""
    memory = ReplayMemory(500, FORM)
    latents = np.concatenate([latents_of(kind, count) for kind in kinds])
    slots = np.repeat(np.arange(len(kinds)), count).astype(np.int32)
    memory.update(latents, slots, session=1, rng=np.random.default_rng(0))
    return memory


def frames_until(lesson: EnoughFrames, latents: NDArray[np.float32]) -> int | None:
    """Return the number of latents after which there are enough; None if there never are."""
    for latent in latents:
        lesson.add(latent)
        if lesson.enough:
            return lesson.frames
    return None


def wandering(kind: int, count: int, step: float) -> NDArray[np.float32]:
    """Return latents of a thing whose looks change all the time and never come back."""
    rng = np.random.default_rng(3)
    start = latents_of(kind, 1)[0]
    direction = rng.normal(0, step, 256)
    walk = np.arange(count)[:, np.newaxis] * direction
    return np.clip(start + walk, 0, 6).astype(np.float32)


def on_circle(*degrees: float) -> NDArray[np.float32]:
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def test_views_that_come_again_are_enough() -> None:
    """The same five views twice: the blocks have one mean, and each view was seen before."""
    views = (-20.0, -10.0, 0.0, 10.0, 20.0)
    assert is_enough(on_circle(*views, *views))


def test_new_views_are_not_enough() -> None:
    views = (-20.0, -10.0, 0.0, 10.0, 20.0)
    turned = tuple(angle + 45 for angle in views)
    assert not is_enough(on_circle(*views, *turned))
    assert not is_enough(on_circle(*views, *views, *turned))


def test_frames_nearer_to_another_class_are_not_enough() -> None:
    views = (-20.0, -10.0, 0.0, 10.0, 20.0)
    frames = on_circle(*views, *views)
    assert is_enough(frames, on_circle(90))
    # One view in five, 20 degrees, is nearer to a class at 35 degrees than to its own at 0.
    assert not is_enough(frames, on_circle(35))


def test_a_block_does_not_speak_for_itself() -> None:
    """Five frames of a cup at 80 degrees among ten of a mug are nearer to a class at 90.

    With themselves in the mean of mugs, (11.7, 4.9) or 23 degrees, they would still be.
    """
    mug = (-2.0, -1.0, 0.0, 1.0, 2.0)
    frames = on_circle(*mug, 70, 75, 80, 85, 90, *mug)
    assert not is_enough(frames, on_circle(90))


def test_copies_of_one_frame_are_never_enough() -> None:
    lesson = EnoughFrames()
    assert frames_until(lesson, np.repeat(latents_of(1, 1), 100, axis=0)) is None


def test_a_class_that_varies_around_its_mean_is_known_after_some_frames() -> None:
    alone = frames_until(EnoughFrames(), latents_of(1, 100))
    beside = frames_until(EnoughFrames(memory_of(2, 3)), latents_of(1, 100))
    assert alone is not None
    assert MIN_BLOCKS * BLOCK <= alone <= 50
    assert beside is not None
    assert MIN_BLOCKS * BLOCK <= beside <= 50


def test_a_thing_that_keeps_changing_is_not_known() -> None:
    assert frames_until(EnoughFrames(), wandering(1, 30, 0.05)) is None


def test_a_thing_that_looks_like_another_class_never_has_enough() -> None:
    memory = memory_of(1, 2)
    assert frames_until(EnoughFrames(memory), latents_of(1, 100, seed=5)) is None


def test_the_class_that_is_taught_again_is_not_another_one() -> None:
    memory = memory_of(1, 2)
    assert frames_until(EnoughFrames(memory, slot=0), latents_of(1, 100, seed=5)) is not None


def test_enough_stays_enough() -> None:
    lesson = EnoughFrames()
    frames_until(lesson, latents_of(1, 100))
    assert lesson.enough
    for latent in wandering(9, 20, 2.0):
        lesson.add(latent)
        assert lesson.enough


def test_means_of_the_memory_leave_one_class_out() -> None:
    memory = memory_of(1, 2, 3)
    expected = [to_vectors(latents_of(kind, 20)).mean(axis=0) for kind in (1, 3)]
    found = stored_means(memory, without=1)
    assert found is not None
    # Each class keeps all of its 20 latents, in any order.
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_an_empty_memory_and_one_of_the_class_alone_have_no_means() -> None:
    assert stored_means(ReplayMemory(10, FORM), without=None) is None
    assert stored_means(memory_of(1), without=0) is None


def test_few_rows_of_each_class_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = memory_of(1, 2, count=100)
    asked: list[int] = []
    read = memory.latents

    def counting(rows: NDArray[np.intp]) -> NDArray[np.float32]:
        asked.append(len(rows))
        return read(rows)

    monkeypatch.setattr(memory, "latents", counting)
    stored_means(memory, without=None)
    assert asked == [ROWS, ROWS]


def test_int8_latents_are_taken_relative_to_their_zero() -> None:
    form = LatentForm((256,), np.dtype(np.int8), np.dtype(np.int8), (0.0, 6.0), zero=-128)
    lesson = EnoughFrames(ReplayMemory(10, form))
    codes = np.round(latents_of(1, 100) / 6 * 255 - 128).astype(np.int8)
    assert frames_until(lesson, codes) == frames_until(EnoughFrames(), latents_of(1, 100))


def test_a_lesson_of_hours_is_judged_by_its_first_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    copies, varied = np.repeat(latents_of(1, 1), 20, axis=0), latents_of(1, 60)
    assert frames_until(EnoughFrames(), np.concatenate([copies, varied])) is not None
    monkeypatch.setattr(module, "MAX_FRAMES", 20)
    lesson = EnoughFrames()
    assert frames_until(lesson, np.concatenate([copies, varied])) is None
    assert lesson.frames == 80
