"""The settings after the ? of a data set's name."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from lrtflite.data import open_source
from lrtflite.errors import DataError


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            "folder:{}?fraction=0.5",
            "Expected one of test, test-folder, classes after folder:PATH\\?, got 'fraction'",
        ),
        ("folder:{}?test=half", "Expected a number after folder:PATH\\?test=, got 'half'"),
        ("folder:{}?test=1", "Expected a held-out fraction between 0 and 1, got 1.0"),
        ("folder:{}?test=", "Expected key=value after the \\?"),
        ("core50:{}?stride=0", "Expected stride as a whole number of at least 1, got '0'"),
        ("core50:{}?run=x", "Expected run as a whole number of at least 0, got 'x'"),
        (
            "core50:{}?protocol=all",
            "Expected protocol=79, 196, 391, nic, or the number of sessions of an exported "
            "stream, got 'all'",
        ),
        ("synthetic?frames=0", "Expected frames as a whole number of at least 1, got '0'"),
        ("synthetic?clips=1", "Expected one of frames, test_frames, classes after synthetic\\?"),
    ],
)
def test_settings_after_the_question_mark_are_checked(
    spec: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message):
        open_source(spec.format(tmp_path))


def test_a_question_mark_in_a_folder_name_is_part_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "what?" / "mug"
    folder.mkdir(parents=True)
    for name in "ab":
        Image.new("RGB", (4, 4)).save(folder / f"{name}.png")
    assert open_source(f"folder:{folder.parent}", size=4).classes == ("mug",)
    assert open_source(f"folder:{folder.parent}?test=0.5", size=4).classes == ("mug",)


def test_synthetic_videos_have_the_length_asked_for() -> None:
    source = open_source("synthetic?frames=3&test_frames=2", size=32)
    assert {clip.length for clip in source.train_clips()} == {3}
    assert {clip.length for clip in source.test_clips()} == {2}
    (frame,) = source.train_clips()[0].read([1])
    assert frame.shape == (32, 32, 3)
