"""Frames that are read when they are needed: the same training, in little memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from coloured_source import ColouredSource
from lrtflite.data import Clip
from lrtflite.host.training import BACKBONE, train
from lrtflite.host.training import streamed as module
from lrtflite.host.training.data import read_frames, select
from lrtflite.host.training.streamed import StreamedFrames, is_streamed


class PictureSource(ColouredSource):
    """The same frames, each in a file of its own."""

    def train_clips(self) -> Sequence[Clip]:
        return [replace(clip, files=True) for clip in super().train_clips()]


def numbered(clip: int, length: int, size: int) -> Clip:
    """Return a clip whose frames are filled with the clip's number and the frame's."""

    def read(indices: Sequence[int]) -> Iterator[NDArray[np.uint8]]:
        for index in indices:
            frame = np.full((size, size, 3), index, np.uint8)
            frame[..., 0] = clip
            yield frame

    return Clip(clip, f"clip {clip}", length, read, files=True)


def test_rows_come_in_any_order_with_repeats() -> None:
    parts = [(numbered(0, 9, 2), (1, 4, 8)), (numbered(1, 5, 2), (0, 3))]
    frames = StreamedFrames(parts, 2)
    assert frames.shape == (5, 2, 2, 3)
    expected = [(0, 1), (0, 4), (0, 8), (1, 0), (1, 3)]

    def found(rows: slice | NDArray[np.int64]) -> list[tuple[int, int]]:
        return [(int(frame[0, 0, 0]), int(frame[0, 0, 1])) for frame in frames[rows]]

    assert found(slice(None)) == expected
    assert found(slice(1, 4)) == expected[1:4]
    order = np.array([4, 0, 2, 0, 3, 4])
    assert found(order) == [expected[row] for row in order]
    assert frames[np.array([], np.int64)].shape == (0, 2, 2, 3)
    assert frames.checksum(0) != StreamedFrames(parts[::-1], 2).checksum(0)


def test_an_epoch_takes_the_memory_of_a_mini_batch() -> None:
    count, size, batch = 1200, 64, 16
    parts = [(numbered(clip, 100, size), tuple(range(100))) for clip in range(count // 100)]
    frames = StreamedFrames(parts, size)
    order = np.random.default_rng(0).permutation(count)
    tracemalloc.start()
    try:
        for start in range(0, count, batch):
            assert frames[order[start : start + batch]].shape == (batch, size, size, 3)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    whole = count * size * size * 3
    assert peak < 3 * batch * size * size * 3 < whole / 20


def test_only_large_sets_of_pictures_are_streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_FRAME_BYTES", 100 * 16 * 16 * 3)
    pictures, video = numbered(0, 101, 16), replace(numbered(0, 101, 16), files=False)
    assert is_streamed([(pictures, tuple(range(101)))], 16)
    assert not is_streamed([(pictures, tuple(range(100)))], 16)
    assert not is_streamed([(video, tuple(range(101)))], 16)
    source = PictureSource(frames=30)
    data = read_frames(select(source, BACKBONE), size=32, on_progress=lambda _: None)
    assert isinstance(data.train.images, StreamedFrames)
    assert not isinstance(data.held_out.images, StreamedFrames)


@pytest.mark.usefixtures("shallow")
def test_training_does_not_depend_on_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = replace(BACKBONE, epochs=1, batch_size=8, frames_per_video=3, held_out_frames=2)
    kept = train(PictureSource(), tmp_path / "kept.keras", options)
    monkeypatch.setattr(module, "MAX_FRAME_BYTES", 0)
    read_again = train(PictureSource(), tmp_path / "streamed.keras", options)
    assert read_again.history == kept.history
    for one, other in zip(kept.model.weights, read_again.model.weights):
        np.testing.assert_array_equal(one, other)
