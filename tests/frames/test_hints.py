"""Hints about frames: blurred, dark, the same again; hand-worked pictures and known kernels."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from lrtflite.data import open_source
from lrtflite.errors import InputError
from lrtflite.frames import hints as module
from lrtflite.frames.hints import (
    BLURRED,
    DARK,
    LAST,
    SAME,
    FrameHints,
    edges,
    is_blurred,
    is_dark,
    thumbnail,
)

Frame = NDArray[np.uint8]


def grey(levels: ArrayLike) -> Frame:
    return np.repeat(np.asarray(levels, np.uint8)[:, :, np.newaxis], 3, axis=2)


def step(low: int = 0, high: int = 200, size: int = 32) -> Frame:
    """Draw two halves of one grey each."""
    columns = np.where(np.arange(size) < size // 2, low, high)
    return grey(np.tile(columns, (size, 1)))


def ball(size: int = 128) -> Frame:
    """Draw a smooth ball, lit from one side, in front of a plain wall."""
    y, x = (np.mgrid[:size, :size] + 0.5 - size / 2) / (size / 3)
    inside = x**2 + y**2 < 1
    return grey(np.where(inside, 150 + 60 * x - 30 * y, 40))


def box_blurred(frame: Frame, side: int) -> Frame:
    """Return the means of `side` x `side` pixels, by shifted sums."""
    shifts = range(-(side // 2), side // 2 + 1)
    rows = np.mean([np.roll(frame.astype(float), shift, axis=0) for shift in shifts], axis=0)
    return np.mean([np.roll(rows, shift, axis=1) for shift in shifts], axis=0).astype(np.uint8)


def moved(frame: Frame, pixels: int) -> Frame:
    shifted = [np.roll(frame.astype(float), shift, axis=1) for shift in range(pixels)]
    return np.mean(shifted, axis=0).astype(np.uint8)


@pytest.fixture(scope="module")
def videos() -> Frame:
    """Return one video each of three drawn objects, (3, 25, 128, 128, 3)."""
    clips = open_source("synthetic", seed=1003).train_clips()
    return np.stack([np.stack(list(clips[place].read())) for place in (3, 61, 120)])


def test_a_step_is_as_high_at_once_as_over_four_pixels() -> None:
    along_x, along_y = edges(step()[..., 1].astype(np.int16))
    assert along_x == (200.0, 200.0)
    assert along_y == (0.0, 0.0)


def test_an_even_ramp_rises_a_quarter_in_one_pixel() -> None:
    ramp = grey(np.tile(np.arange(32) * 8, (32, 1)))
    assert edges(ramp[..., 1].astype(np.int16))[0] == (8.0, 32.0)
    assert is_blurred(ramp)


def test_contrast_does_not_change_what_is_blurred() -> None:
    for contrast in (40, 100, 200):
        assert not is_blurred(step(40, 40 + contrast, 64))
        assert is_blurred(box_blurred(step(40, 40 + contrast, 64), 7))


def test_a_smooth_ball_is_not_blurred_until_its_outline_is() -> None:
    assert FrameHints().add(ball()) == ()
    assert FrameHints().add(box_blurred(ball(), 7)) == (BLURRED,)


def test_a_plain_frame_has_no_edges_to_judge() -> None:
    noise = np.random.default_rng(0).integers(100, 106, (64, 64, 3)).astype(np.uint8)
    assert FrameHints().add(noise) == ()
    assert FrameHints().add(np.full((64, 64, 3), 128, np.uint8)) == ()


def test_videos_in_focus_get_few_hints_and_blurred_ones_many(videos: Frame) -> None:
    sharp, soft = [], []
    for video in videos:
        hints, of_soft = FrameHints(), FrameHints()
        sharp += [hints.add(frame) for frame in video]
        soft += [of_soft.add(box_blurred(frame, 5)) for frame in video]
    assert sum(BLURRED in found for found in sharp) <= 0.04 * len(sharp)
    assert all(BLURRED in found for found in soft)


def test_motion_along_one_axis_is_seen_next_to_sharp_frames(videos: Frame) -> None:
    found = []
    for video in videos:
        hints = FrameHints()
        for frame in video[:10]:
            hints.add(frame)
        found += [BLURRED in hints.add(moved(frame, 9)) for frame in video[10:]]
    assert np.mean(found) > 0.8


def test_a_lesson_that_starts_out_of_focus_does_not_excuse_it(videos: Frame) -> None:
    hints = FrameHints()
    assert all(BLURRED in hints.add(box_blurred(frame, 5)) for frame in videos[0][:12])
    assert BLURRED not in hints.add(videos[0][20])


def test_a_dark_frame_is_dark_whatever_its_colour(videos: Frame) -> None:
    for channel in range(3):
        frame = np.zeros((64, 64, 3), np.uint8)
        frame[..., channel] = 63
        assert is_dark(frame)
        frame[..., channel] = 64
        assert not is_dark(frame)
    assert not any(is_dark(frame) for video in videos for frame in video)
    assert all(is_dark(frame // 5) for video in videos for frame in video)


def test_a_bright_thing_on_black_is_not_dark() -> None:
    frame = np.zeros((64, 64, 3), np.uint8)
    frame[:16, :16] = 200  # 6 % of the frame
    assert not is_dark(frame)
    frame[:16, 8:16] = 0  # 3 %
    assert is_dark(frame)


def test_noise_in_the_dark_is_not_called_blurred(videos: Frame) -> None:
    assert FrameHints().add(videos[0][0] // 5) == (DARK,)


def test_the_first_frame_is_never_the_same() -> None:
    assert FrameHints().add(np.full((32, 32, 3), 90, np.uint8)) == ()


def test_a_frame_that_comes_again_is_the_same_despite_noise_and_gain(videos: Frame) -> None:
    rng = np.random.default_rng(0)
    for video in videos:
        hints = FrameHints()
        for frame in video:
            hints.add(frame)
        brighter = video[4] * 1.04 + rng.normal(0, 3, video[4].shape)
        assert SAME in hints.add(brighter.clip(0, 255).astype(np.uint8))


def test_a_still_hand_is_the_same_after_the_last_frames(videos: Frame) -> None:
    rng, hints, found = np.random.default_rng(0), FrameHints(), []
    for _ in range(3 * LAST):
        shaken = np.roll(videos[1][0], tuple(rng.integers(0, 2, 2)), axis=(0, 1))
        found.append(SAME in hints.add(shaken))
    assert all(found[LAST:])
    assert hints.fresh == found.count(False)


def test_things_that_turn_are_not_the_same(videos: Frame) -> None:
    found = []
    for video in videos:
        hints = FrameHints()
        found += [SAME in hints.add(frame) for frame in video]
    assert np.mean(found) <= 0.05


def test_a_thumbnail_has_the_means_of_its_parts() -> None:
    """Two halves of 0 and 200: means 0 and 200, mean 100, contrast 100 and 4 that are added."""
    expected = np.tile(np.repeat([-100 / 104, 100 / 104], 4), 8)
    np.testing.assert_allclose(thumbnail(step()[..., 1].astype(np.int16)), expected, rtol=1e-6)


def test_a_camera_may_reuse_its_buffer() -> None:
    hints, buffer = FrameHints(), step().copy()
    assert hints.add(buffer) == ()
    buffer[:] = np.transpose(step(), (1, 0, 2))
    assert SAME not in hints.add(buffer)
    buffer[:] = step()
    assert SAME in hints.add(buffer)


def test_a_long_lesson_is_compared_with_its_last_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_EARLIER", 3)
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (4, 32, 32, 3), dtype=np.uint8)
    hints = FrameHints()
    for frame in frames[:3]:
        hints.add(frame)
    assert SAME in hints.add(frames[0])
    hints.add(frames[3])
    assert SAME not in hints.add(frames[1])


@pytest.mark.parametrize("size", [1, 2, 4, 5, 7, 9])
def test_tiny_frames_are_judged_without_an_error(size: int) -> None:
    hints = FrameHints()
    hints.add(np.full((size, size, 3), 255, np.uint8))
    assert SAME in hints.add(np.full((size, size, 3), 255, np.uint8))


@pytest.mark.parametrize(
    "bad",
    [
        np.zeros((32, 32, 3), np.float32),
        np.zeros((32, 31, 3), np.uint8),
        np.zeros((2, 32, 32, 3), np.uint8),
        np.zeros((0, 0, 3), np.uint8),
        np.zeros((), np.uint8),
        "mug.png",
        None,
    ],
)
def test_anything_but_a_frame_is_refused(bad: object) -> None:
    with pytest.raises(InputError, match=r"^Expected"):
        FrameHints().add(bad)  # type: ignore[arg-type]


def test_a_frame_of_another_size_is_refused_and_changes_nothing() -> None:
    hints = FrameHints()
    hints.add(step(size=32))
    with pytest.raises(InputError, match="32, 32, 3"):
        hints.add(step(size=64))
    assert SAME in hints.add(step(size=32))
