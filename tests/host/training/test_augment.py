"""Augmentation of training frames."""

from __future__ import annotations

import numpy as np
import pytest

from lrtflite.host.training import augment as module
from lrtflite.host.training.augment import augment


def test_same_generator_same_frames() -> None:
    frames = np.random.default_rng(0).integers(0, 256, (4, 16, 16, 3), np.uint8)
    first, second = (augment(frames, np.random.default_rng(7)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert first.shape == frames.shape
    assert first.dtype == np.uint8
    assert not np.array_equal(first, frames)


def test_without_brightness_every_frame_is_a_shift_or_a_mirrored_shift(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "BRIGHTNESS_FACTORS", (1.0, 1.0))
    # Pixel values are row * 16 + column, so a pixel says where it came from.
    places = np.arange(256, dtype=np.uint8).reshape(16, 16)
    frames = np.repeat(places[None, :, :, None], 3, axis=3).repeat(40, axis=0)
    moves = set()
    for frame in augment(frames, np.random.default_rng(1)):
        rows, columns = divmod(frame[..., 0].astype(int), 16)
        mirrored = bool(columns[8, 3] > columns[8, 12])
        columns = columns[:, ::-1] if mirrored else columns
        down, right = rows[8, 8] - 8, columns[8, 8] - 8
        np.testing.assert_array_equal(
            rows, np.clip(np.arange(16) + down, 0, 15)[:, None] + 0 * rows
        )
        np.testing.assert_array_equal(columns[0], np.clip(np.arange(16) + right, 0, 15))
        assert max(abs(down), abs(right)) <= 2  # an eighth of 16
        moves.add((mirrored, int(down), int(right)))
    assert {mirrored for mirrored, _, _ in moves} == {True, False}
    assert len(moves) > 10


def test_brightness_scales_and_saturates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BRIGHTNESS_FACTORS", (1.3, 1.3))
    frames = np.array([100, 200], np.uint8).reshape(2, 1, 1, 1).repeat(3, axis=3)
    assert augment(frames, np.random.default_rng(0))[:, 0, 0, 0].tolist() == [130, 255]
