"""`folder:PATH` with `train` and `test`, and `?test-folder=`."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from PIL import Image

from lrtflite.data import FrameSource, open_source, skipped_files
from lrtflite.errors import DataError


def add_images(folder: Path, *greys: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for grey in greys:
        Image.new("L", (4, 4), grey).save(folder / f"{grey:03d}.png")


@pytest.fixture
def things(tmp_path: Path) -> Path:
    """Two classes; pictures to learn from are dark, those to test with are bright."""
    things = tmp_path / "things"
    for name, offset in (("mug", 0), ("hat", 10)):
        add_images(things / "train" / name, *(offset + grey for grey in (1, 2, 3)))
        add_images(things / "test" / name, 200 + offset)
    return things


def greys(source: FrameSource) -> list[list[tuple[str, int]]]:
    """Return class and grey of each training frame, and of each test frame."""
    return [
        [(source.classes[c.label], int(frame[0, 0, 0])) for c in clips for frame in c.read()]
        for clips in (source.train_clips(), source.test_clips())
    ]


DARK = [("hat", 11), ("hat", 12), ("hat", 13), ("mug", 1), ("mug", 2), ("mug", 3)]
BRIGHT = [("hat", 210), ("mug", 200)]


def test_train_is_taught_and_test_tests_whatever_the_seed(things: Path) -> None:
    for seed in (0, 1):
        source = open_source(f"folder:{things}", size=4, seed=seed)
        assert source.classes == ("hat", "mug")
        assert greys(source) == [DARK, BRIGHT]
    assert next(clip.name for clip in source.train_clips()) == "train/hat/011.png"
    assert [clip.name for clip in source.test_clips()] == ["test/hat/210.png", "test/mug/200.png"]


def test_another_folder_may_test(
    things: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.move(things / "test", tmp_path / "office")
    monkeypatch.chdir(tmp_path)
    for train, test in (
        (things / "train", tmp_path / "office"),
        (Path("things/train"), Path("office")),
        (Path("things/train"), tmp_path / "office"),
        (things / "train", Path("things/../office")),
    ):
        source = open_source(f"folder:{train}?test-folder={test}", size=4)
        assert greys(source) == [DARK, BRIGHT]


def test_classes_are_chosen_in_both(things: Path) -> None:
    # A class that is not chosen may be missing on one side, and its files are not read.
    add_images(things / "train" / "pan", 50)
    (things / "test" / "hat" / "bad.png").write_bytes(b"")
    source = open_source(f"folder:{things}?classes=mug,", size=4)
    assert greys(source) == [[("mug", 1), ("mug", 2), ("mug", 3)], [("mug", 200)]]


def test_classes_that_only_one_has_are_named_in_one_line(things: Path) -> None:
    add_images(things / "train" / "pan", 50)
    add_images(things / "train" / "pen", 50)
    add_images(things / "test" / "cup", 50)
    train, test = things / "train", things / "test"
    with pytest.raises(DataError) as caught:
        open_source(f"folder:{things}")
    assert str(caught.value) == (
        f"Expected the same class folders in {train} and {test}, got pan, pen only in {train} and "
        f"cup only in {test}; add the missing ones, or choose from the others with ?classes="
    )


def test_classes_called_train_and_test_are_classes(tmp_path: Path) -> None:
    """Two folders of pictures are split by the draw, as before."""
    add_images(tmp_path / "train", 1, 2, 3)
    add_images(tmp_path / "test", 4, 5, 6)
    source = open_source(f"folder:{tmp_path}", size=4)
    assert source.classes == ("test", "train")
    assert len(source.train_clips()) == 4


def test_a_third_folder_is_not_left_out_silently(things: Path) -> None:
    add_images(things / "val" / "mug", 1)
    (things / ".cache" / "x").mkdir(parents=True)
    (things / "README.txt").write_text("notes")
    with pytest.raises(DataError, match=r"next to train and test in .*, got val; move it else"):
        open_source(f"folder:{things}")
    source = open_source(f"folder:{things / 'train'}?test-folder={things / 'test'}", size=4)
    assert greys(source) == [DARK, BRIGHT]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("test=0.5", r"Expected no \?test= where .*test has the test pictures, got test=0\.5"),
        ("test-folder=nowhere", "nowhere, which does not exist; check the path"),
        ("test-folder={}/train", "Expected a test folder other than .*train, got the same one"),
    ],
)
def test_settings_that_do_not_fit(things: Path, settings: str, said: str) -> None:
    path = things / "train" if settings.startswith("test-folder") else things
    with pytest.raises(DataError, match=said) as caught:
        open_source(f"folder:{path}?{settings.format(things)}")
    assert len(str(caught.value).splitlines()) == 1


def test_unreadable_files_are_named_with_their_folder(things: Path) -> None:
    (things / "train" / "mug" / "002.png").write_bytes(b"")
    (things / "test" / "mug" / "200.png").write_bytes(b"no picture")
    with pytest.raises(DataError, match=r"got 2 of 8 .*: train/mug/002\.png \(empty\), test/mug/"):
        open_source(f"folder:{things}")
    with pytest.raises(DataError, match=r"readable image or video in .*test/mug, got none of 1"):
        open_source(f"folder:{things}", skip_unreadable=True)
    add_images(things / "test" / "mug", 220)
    source = open_source(f"folder:{things}", size=4, skip_unreadable=True)
    assert [name.split(" ")[0] for name in skipped_files(source)] == [
        "train/mug/002.png",
        "test/mug/200.png",
    ]
    assert greys(source)[1] == [("hat", 210), ("mug", 220)]


def test_a_link_to_the_same_folder_is_the_same_folder(things: Path, tmp_path: Path) -> None:
    os.symlink(things / "train", tmp_path / "link")
    with pytest.raises(DataError, match="got the same one"):
        open_source(f"folder:{things / 'train'}?test-folder={tmp_path / 'link'}")
