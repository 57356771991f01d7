"""A remark on pictures that are much larger than the frames."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from lrtflite.data import open_source
from lrtflite.data.detail import lost_detail_note
from lrtflite.data.media import shorter_side
from lrtflite.data.overview import overview


def add_pictures(folder: Path, *sizes: tuple[int, int]) -> None:
    folder.mkdir(parents=True)
    for number, size in enumerate(sizes):
        Image.new("RGB", size).save(folder / f"{number}.png")


@pytest.mark.parametrize(("size", "side"), [(128, None), (95, None), (94, "142"), (32, "142")])
def test_pictures_of_one_and_a_half_times_the_side_are_noted(
    tmp_path: Path, size: int, side: str | None
) -> None:
    # Shorter sides 100, 142 and 300; 142 is 1.5 times 94 2/3.
    add_pictures(tmp_path / "mug", (300, 100), (142, 150), (300, 400))
    notes = overview(open_source(f"folder:{tmp_path}", size=size)).notes
    if side is None:
        assert notes == ()
    else:
        [note] = notes
        assert f" has {side} pixels (median), that of the frames {size}: " in note
        assert "--input-size" in note


def test_few_headers_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_pictures(tmp_path / "mug", *[(8, 8)] * 10)
    source = open_source(f"folder:{tmp_path}", size=2)
    read: list[Path] = []

    def counted(path: Path) -> int:
        read.append(path)
        return shorter_side(path)

    monkeypatch.setattr("lrtflite.data.detail.MAX_FILES", 4)
    monkeypatch.setattr("lrtflite.data.detail.shorter_side", counted)
    assert "has 8 pixels" in str(lost_detail_note(source))
    assert len(set(read)) == 4


def test_sources_that_draw_have_no_remark() -> None:
    source = open_source("synthetic?classes=2&frames=1&test_frames=1", size=8)
    assert lost_detail_note(source) is None
