"""The overview of a data set and its contact sheet."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from coloured_source import COLOURS, ColouredSource
from lrtflite.data import Clip, FrameSource, open_source
from lrtflite.data.overview import Amount, overview
from lrtflite.data.sheet import (
    CELL,
    HEADING,
    MARGIN,
    MAX_CLASSES,
    NAMES,
    ROW,
    SPACE,
    TEST_GROUND,
    contact_sheet,
    spread,
)


def add(folder: Path, *, pictures: int = 0, clips: Sequence[int] = ()) -> None:
    folder.mkdir(parents=True)
    for k in range(pictures):
        Image.new("RGB", (4, 4)).save(folder / f"{k}.png")
    for k, length in enumerate(clips):
        first, *rest = [Image.new("L", (4, 4), 4 * i) for i in range(length)]
        first.save(folder / f"{k}.gif", save_all=True, append_images=rest, duration=100)


def test_the_counts(tmp_path: Path) -> None:
    add(tmp_path / "hat", pictures=12)
    add(tmp_path / "mug", clips=[7, 7, 7])
    add(tmp_path / "pen", clips=[60])
    add(tmp_path / "toy", clips=[5], pictures=1)
    found = overview(open_source(f"folder:{tmp_path}", size=8))
    assert [(each.name, each.kind) for each in found.classes] == [
        ("hat", "pictures"),
        ("mug", "videos"),
        ("pen", "videos"),
        ("toy", "pictures and videos"),
    ]
    hat, mug, pen, _ = found.classes
    assert (hat.train, hat.test) == (Amount(8, 8), Amount(4, 4))
    assert (mug.train, mug.test) == (Amount(2, 14), Amount(1, 7))
    assert (pen.train, pen.test) == (Amount(1, 30), Amount(1, 20))
    assert found.train.clips == 8 + 2 + 1 + 1
    assert found.train.frames + found.test.frames == 12 + 21 + 50 + 6
    assert (found.size, found.protocol, found.sessions) == (8, None, None)
    assert [note.split(":")[0] for note in found.notes] == ["pen"]


class OneSided(ColouredSource):
    """A source without test frames of the first class, and without any frames of the second."""

    def train_clips(self) -> Sequence[Clip]:
        return [clip for clip in super().train_clips() if clip.label != 1]

    def test_clips(self) -> Sequence[Clip]:
        return [clip for clip in super().test_clips() if clip.label > 1]


def test_a_class_without_training_or_test_frames_is_named() -> None:
    found = overview(OneSided())
    assert found.notes == ("green: no training frames.", "red, green: no test frames.")
    assert [each.kind for each in found.classes] == ["videos", "nothing", "videos", "videos"]


def clip(length: int) -> Clip:
    def read(indices: Sequence[int]) -> Iterator[np.ndarray]:
        return iter(())

    return Clip(0, "x", length, read)


@pytest.mark.parametrize(
    ("lengths", "count", "expected"),
    [
        ([9], 3, [(1, 4, 7)]),
        ([2], 6, [(0, 1)]),
        ([10, 10], 3, [(5,), (2, 7)]),
        ([1] * 4, 2, [(0,), (0,)]),
        ([], 3, []),
    ],
)
def test_frames_of_a_sheet_are_spread(
    lengths: list[int], count: int, expected: list[tuple[int, ...]]
) -> None:
    clips = [clip(length) for length in lengths]
    assert [indices for _, indices in spread(clips, count)] == expected


def drawn(source: FrameSource) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(contact_sheet(source))))


def test_a_row_shows_its_class_with_the_test_frames_apart() -> None:
    sheet = drawn(ColouredSource(noise=0))
    for row, colour in enumerate(COLOURS.values()):
        middle = sheet[HEADING + row * ROW + ROW // 2]
        is_frame = (middle == colour).all(axis=1)
        # Six training frames and three test frames, side by side.
        assert is_frame.sum() == 9 * CELL
        first = int(is_frame.argmax())
        assert first == MARGIN + NAMES
        gap = middle[first + CELL + SPACE // 2].tolist()
        assert gap == [255, 255, 255]
        last = len(is_frame) - int(is_frame[::-1].argmax())
        assert middle[last + SPACE // 2].tolist() == list(bytes.fromhex(TEST_GROUND[1:]))


def test_a_class_without_frames_leaves_its_row_empty() -> None:
    sheet = drawn(OneSided(noise=0))
    middle = sheet[HEADING + ROW + ROW // 2]
    assert not (middle == COLOURS["green"]).all(axis=1).any()
    assert ((sheet[HEADING + ROW // 2] == COLOURS["red"]).all(axis=1)).sum() == 6 * CELL


@pytest.mark.parametrize("name", ["x" * 200, "one_two three-four " * 10, "théière", "茶", "W"])
def test_a_name_stays_in_its_column(name: str, tmp_path: Path) -> None:
    add(tmp_path / name, pictures=2)
    column = drawn(open_source(f"folder:{tmp_path}"))[
        HEADING + 1 : HEADING + ROW - 1, : MARGIN + NAMES
    ]
    ink = (column < 128).all(axis=2)
    assert ink.any()
    assert not ink[:, -SPACE:].any()


def test_a_sheet_has_thirty_rows_at_most() -> None:
    source = open_source("synthetic?frames=1&test_frames=1", size=16)
    assert len(source.classes) == 50
    image = Image.open(io.BytesIO(contact_sheet(source)))
    assert image.height == HEADING + MAX_CLASSES * ROW + MARGIN
