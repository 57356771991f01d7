"""Pictures named one by one or by their folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from coloured_pictures import draw_pictures
from lrtflite.data.folders.pictures import find_pictures, read_pictures, refuse_pictures
from lrtflite.errors import DataError


@pytest.fixture
def mugs(tmp_path: Path) -> Path:
    folder = draw_pictures(tmp_path / "things", classes=1, images=3) / "amber"
    (folder / ".DS_Store").write_bytes(b"")
    (folder / "notes.txt").write_text("from the kitchen")
    return folder


def test_folders_give_their_pictures_by_name_and_files_come_once(mugs: Path) -> None:
    one, two, three = (mugs / f"00{k}.png" for k in range(3))
    # A file may have any name, or be missing: reading says so.
    other = mugs.parent / "photo"
    assert find_pictures([two, mugs, other, one]) == [two, one, three, other]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "kitchen.mp4",
            r"Expected images in .*amber \(jpg jpeg png bmp gif webp\), got the file k",
        ),
        ("photo.heic", "got the file photo.heic; convert it or move it elsewhere"),
        ("more/", "got the folder more; convert it or move it elsewhere"),
    ],
)
def test_nothing_in_a_folder_is_left_out_silently(mugs: Path, name: str, said: str) -> None:
    if name.endswith("/"):
        (mugs / name).mkdir()
    else:
        (mugs / name).write_bytes(b"x")
    with pytest.raises(DataError, match=said):
        find_pictures([mugs])


def test_a_video_and_an_empty_folder_are_refused(mugs: Path, tmp_path: Path) -> None:
    (tmp_path / "a.mov").write_bytes(b"x")
    with pytest.raises(DataError, match=r"Expected pictures, got the video .*a\.mov; save some"):
        find_pictures([tmp_path / "a.mov"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"Expected images in .*empty, got none; add some"):
        find_pictures([tmp_path / "empty"])


def test_pictures_that_cannot_be_read_are_named(mugs: Path) -> None:
    (mugs / "001.png").write_bytes(b"no picture")
    heard: list[tuple[int, int | None]] = []
    found = read_pictures(
        [*find_pictures([mugs]), mugs / "gone.png"],
        8,
        on_progress=lambda p: heard.append((p.done, p.total)),
    )
    assert list(found.frames) == [mugs / "000.png", mugs / "002.png"]
    assert {frame.shape for frame in found.frames.values()} == {(8, 8, 3)}
    assert list(found.unreadable) == [mugs / "001.png", mugs / "gone.png"]
    assert heard == [(1, 4), (2, 4), (3, 4), (4, 4)]
    with pytest.raises(DataError) as caught:
        refuse_pictures(found.unreadable, 4, advice="remove them")
    assert str(caught.value) == (
        "Expected readable pictures, got 2 of 4 that cannot be read: "
        f"{mugs / '001.png'} (not an image), {mugs / 'gone.png'} (No such file or directory); "
        "remove them"
    )
    refuse_pictures({}, 4, advice="remove them")
