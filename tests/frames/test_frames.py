"""fit_frame against hand-worked pixels, two other ways to compute it, and Pillow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from lrtflite.errors import InputError
from lrtflite.frames.checks import check_frames
from lrtflite.frames.fit import fit_frame


def rgb(grey: list[list[int]]) -> np.ndarray:
    """Return an image whose channels differ, so that swapped channels are noticed."""
    red = np.array(grey, np.uint8)
    return np.stack([red, 255 - red, np.zeros_like(red)], axis=2)


def noise(height: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def test_the_centred_square_is_cut_out_and_kept_when_it_has_the_size() -> None:
    wide = rgb([[0, 1, 2, 3, 4], [10, 11, 12, 13, 14]])
    np.testing.assert_array_equal(fit_frame(wide, 2)[:, :, 0], [[1, 2], [11, 12]])
    tall = rgb([[0, 1], [10, 11], [20, 21]])
    np.testing.assert_array_equal(fit_frame(tall, 2)[:, :, 0], [[0, 1], [10, 11]])
    frame = noise(7, 7)
    np.testing.assert_array_equal(fit_frame(frame, 7), frame)
    assert not np.shares_memory(fit_frame(frame, 7), frame)


def test_three_pixels_become_two_by_hand() -> None:
    # Each output takes 2/3 of its outer and 1/3 of the middle pixel, along each axis.
    fitted = fit_frame(rgb([[0, 30, 60], [90, 120, 150], [180, 210, 240]]), 2)
    np.testing.assert_array_equal(fitted[:, :, 0], [[40, 80], [160, 200]])
    np.testing.assert_array_equal(fitted[:, :, 1], [[215, 175], [95, 55]])
    np.testing.assert_array_equal(fitted[:, :, 2], 0)


def test_two_pixels_become_four_by_hand() -> None:
    # Half-pixel centres: weights 1, 3/4, 1/4, 0 on the first pixel.
    fitted = fit_frame(rgb([[0, 80], [160, 240]]), 4)
    expected = [[0, 20, 60, 80], [40, 60, 100, 120], [120, 140, 180, 200], [160, 180, 220, 240]]
    np.testing.assert_array_equal(fitted[:, :, 0], expected)


@pytest.mark.parametrize(
    ("pixels", "mean"), [([0, 0, 0, 1], 0), ([0, 1, 0, 1], 1), ([1, 1, 1, 0], 1), ([1, 2, 1, 2], 2)]
)
def test_halves_round_up(pixels: list[int], mean: int) -> None:
    assert fit_frame(rgb([pixels[:2], pixels[2:]]), 1)[0, 0, 0] == mean


@settings(deadline=None)
@given(side=st.integers(2, 40), size=st.integers(1, 39), seed=st.integers(0, 99))
def test_shrinking_is_the_exact_area_average(side: int, size: int, seed: int) -> None:
    size = min(size, side - 1)
    frame = noise(side, side, seed)
    # Cut every pixel into size x size equal ones: an output is then a whole block of side x side.
    fine = frame.astype(np.int64).repeat(size, axis=0).repeat(size, axis=1)
    blocks = fine.reshape(size, side, size, side, 3).sum(axis=(1, 3))
    expected = (2 * blocks + side**2) // (2 * side**2)
    np.testing.assert_array_equal(fit_frame(frame, size), expected)


@settings(deadline=None)
@given(side=st.integers(1, 20), more=st.integers(1, 30), seed=st.integers(0, 99))
def test_enlarging_is_linear_between_pixel_centres(side: int, more: int, seed: int) -> None:
    frame, size = noise(side, side, seed), side + more
    at = (np.arange(size) + 0.5) * side / size - 0.5
    lines = np.apply_along_axis(lambda v: np.interp(at, np.arange(side), v), 0, frame)
    exact = np.apply_along_axis(lambda v: np.interp(at, np.arange(side), v), 1, lines)
    # Rounded once: at most half a level from the real number, and float noise.
    assert np.abs(fit_frame(frame, size) - exact).max() <= 0.5 + 1e-9


@pytest.mark.parametrize(
    ("side", "size", "how"),
    [
        (256, 128, Image.Resampling.BOX),  # whole factors only: its box has no partial pixels
        (384, 128, Image.Resampling.BOX),
        (96, 128, Image.Resampling.BILINEAR),
        (50, 128, Image.Resampling.BILINEAR),
    ],
)
def test_close_to_pillow(side: int, size: int, how: Image.Resampling) -> None:
    frame = noise(side, side)
    other = np.asarray(Image.fromarray(frame).resize((size, size), how)).astype(int)
    # Pillow rounds after each of its two passes, so it may be one level off.
    assert np.abs(fit_frame(frame, size) - other).max() <= 1


def test_a_photograph_is_fitted() -> None:
    fitted = fit_frame(np.full((1500, 2000, 3), 200, np.uint8), 128)
    assert fitted.shape == (128, 128, 3)
    assert fitted.dtype == np.uint8
    assert fitted.flags.c_contiguous
    assert (fitted == 200).all()


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((4, 4), np.uint8),
        np.zeros((4, 4, 4), np.uint8),
        np.zeros((4, 4, 3), np.float32),
        np.zeros((0, 4, 3), np.uint8),
    ],
)
def test_images_that_are_not_rgb_are_refused(image: np.ndarray) -> None:
    with pytest.raises(InputError, match=r"Expected an image of shape \(H, W, 3\) uint8"):
        fit_frame(image, 2)
    with pytest.raises(InputError, match="size as a whole number of at least 1, got 0"):
        fit_frame(np.zeros((4, 4, 3), np.uint8), 0)


def test_one_frame_or_a_stack_is_accepted() -> None:
    frame = noise(4, 4)
    assert check_frames(frame, 4).shape == (1, 4, 4, 3)
    np.testing.assert_array_equal(check_frames([frame, frame], 4)[1], frame)
    assert check_frames(np.stack([frame] * 3)[::2], 4).flags.c_contiguous


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ([], "got none"),
        (np.zeros((0, 4, 4, 3), np.uint8), "got none"),
        (np.zeros((2, 5, 4, 3), np.uint8), r"got \(2, 5, 4, 3\); use lrtflite.fit_frame"),
        (np.zeros((4, 4), np.uint8), r"got \(4, 4\)"),
        (np.zeros((1, 1, 4, 4, 3), np.uint8), r"got \(1, 1, 4, 4, 3\)"),
        (np.zeros((4, 4, 3), np.float32), "got float32; convert"),
        (np.full((4, 4, 3), np.nan), "got float64 with NaN or infinity"),
        (np.zeros((4, 4, 3), np.int64), "got int64"),
        ([np.zeros((4, 4, 3), np.uint8), np.zeros((5, 5, 3), np.uint8)], "got several"),
        ("frames.png", "got the path or text 'frames.png'; read the picture first"),
        (Path("mug.jpg"), "got the path or text .*mug.jpg"),
    ],
)
def test_frames_that_do_not_fit_are_refused_in_one_line(frames: object, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        check_frames(frames, 4)  # type: ignore[arg-type]
    assert str(caught.value).startswith("Expected frames")
    assert "\n" not in str(caught.value)
