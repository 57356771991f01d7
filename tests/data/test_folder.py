"""`folder:PATH`: classes, the held-out split, and errors for unexpected folders."""

from __future__ import annotations

import unicodedata
from collections import Counter
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from lrtflite.data import FrameSource, open_source
from lrtflite.data.folders.source import FolderSource
from lrtflite.errors import DataError


def add_images(folder: Path, count: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(count):
        Image.new("RGB", (6, 4), (i, 0, 0)).save(folder / f"{i:03d}.png")


def add_gif(path: Path, count: int) -> None:
    """Write a clip whose frame i has the grey level 10 * i."""
    path.parent.mkdir(parents=True, exist_ok=True)
    first, *rest = [Image.new("L", (4, 4), 10 * i) for i in range(count)]
    first.save(path, save_all=True, append_images=rest, duration=100)


def names(source: FrameSource) -> tuple[list[str], list[str]]:
    return [c.name for c in source.train_clips()], [c.name for c in source.test_clips()]


def test_classes_and_files_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    add_images(tmp_path / "mug", 3)
    add_images(tmp_path / "Ball", 3)
    (tmp_path / "README.txt").write_text("next to the classes")
    (tmp_path / ".cache").mkdir()
    (tmp_path / "mug" / ".DS_Store").write_bytes(b"")
    (tmp_path / "mug" / "labels.json").write_text("{}")
    source = open_source(f"folder:{tmp_path}", size=8)
    assert source.classes == ("Ball", "mug")
    assert source.size == 8
    train, test = names(source)
    assert sorted(train + test) == [f"{c}/00{i}.png" for c in ("Ball", "mug") for i in range(3)]
    assert train == sorted(train)
    for clip in (*source.train_clips(), *source.test_clips()):
        assert source.classes[clip.label] == clip.name.split("/")[0]
        (frame,) = clip.read()
        assert frame.shape == (8, 8, 3)
        assert frame[0, 0].tolist() == [int(clip.name[-5]), 0, 0]


@pytest.mark.parametrize(
    ("images", "test", "held_out"),
    [
        (2, None, 1),
        (3, None, 1),
        (4, None, 1),
        (5, None, 2),
        (31, None, 10),
        (60, None, 20),
        (10, 0.5, 5),
        (10, 0.01, 1),
        (10, 0.99, 9),
    ],
)
def test_a_third_or_the_given_share_is_held_out(
    images: int, test: float | None, held_out: int, tmp_path: Path
) -> None:
    add_images(tmp_path / "mug", images)
    source = open_source(f"folder:{tmp_path}" + (f"?test={test}" if test else ""))
    train, tested = names(source)
    assert len(tested) == held_out
    assert len(train) == images - held_out
    assert not set(train) & set(tested)


def test_the_split_depends_on_the_seed_and_the_class_alone(tmp_path: Path) -> None:
    add_images(tmp_path / "mug", 12)
    before = names(FolderSource(tmp_path))
    assert names(FolderSource(tmp_path)) == before
    assert len({tuple(names(FolderSource(tmp_path, seed=seed))[1]) for seed in range(5)}) > 1
    add_images(tmp_path / "ball", 12)
    train, test = names(FolderSource(tmp_path))
    assert [n for n in train if n.startswith("mug")] == before[0]
    assert [n for n in test if n.startswith("mug")] == before[1]


def test_a_video_is_on_one_side_only(tmp_path: Path) -> None:
    for name in "abc":
        add_gif(tmp_path / "mug" / f"{name}.gif", 6)
    for seed in range(4):
        source = FolderSource(tmp_path, seed=seed)
        train, test = names(source)
        assert (len(train), len(test)) == (2, 1)
        assert sorted(train + test) == ["mug/a.gif", "mug/b.gif", "mug/c.gif"]
        assert all(clip.length == 6 for clip in source.train_clips())


def test_videos_and_images_mix(tmp_path: Path) -> None:
    add_images(tmp_path / "mug", 2)
    with av.open(str(tmp_path / "mug" / "b.mp4"), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width = stream.height = 64
        stream.pix_fmt = "yuv420p"
        for _ in range(5):
            frame = av.VideoFrame.from_ndarray(np.zeros((64, 64, 3), np.uint8), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    source = FolderSource(tmp_path, size=16)
    clips = [*source.train_clips(), *source.test_clips()]
    assert Counter(clip.length for clip in clips) == {1: 2, 5: 1}
    assert all(frame.shape == (16, 16, 3) for clip in clips for frame in clip.read())


def test_a_picture_damaged_after_the_check_is_named(tmp_path: Path) -> None:
    add_images(tmp_path / "mug", 3)
    source = FolderSource(tmp_path)
    (tmp_path / "mug" / "001.png").write_bytes(b"not a picture")
    clips = {c.name: c for c in (*source.train_clips(), *source.test_clips())}
    frames = clips["mug/001.png"].read()
    with pytest.raises(DataError, match=r"Expected a readable image, got .*mug/001.png"):
        next(frames)


def test_unexpected_folders_are_refused(tmp_path: Path) -> None:
    def message() -> str:
        with pytest.raises(DataError) as caught:
            open_source(f"folder:{tmp_path}")
        assert "\n" not in str(caught.value)
        return str(caught.value)

    assert "got no folder in it; make a folder for each class" in message()
    Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    assert "got 1 pictures directly in it" in message()
    mug = tmp_path / "mug"
    mug.mkdir()
    assert message() == f"Expected images or videos in {mug}, got none; add some or remove it"
    add_images(mug, 1)
    assert f"Expected at least 2 images or a video in {mug}" in message()
    (mug / "b.heic").write_bytes(b"")
    assert "got the file b.heic; convert it or move it elsewhere" in message()
    (mug / "b.heic").unlink()
    (mug / "more").mkdir()
    assert "got the folder more;" in message()
    expected = "Expected a folder with one folder of pictures per class, got .*"
    with pytest.raises(DataError, match=f"{expected}nowhere, which does not exist; check the path"):
        open_source(f"folder:{tmp_path / 'nowhere'}")
    with pytest.raises(DataError, match=f"{expected}a.png, which is not a folder; check the path"):
        open_source(f"folder:{tmp_path / 'a.png'}")


def test_photographs(shared: Path) -> None:
    source = open_source(f"folder:{shared / 'data' / 'caltech50_128'}")
    assert len(source.classes) == 50
    assert len(source.train_clips()) + len(source.test_clips()) == 2625
    tested = Counter(clip.label for clip in source.test_clips())
    trained = Counter(clip.label for clip in source.train_clips())
    for label in range(50):
        assert tested[label] == pytest.approx((tested[label] + trained[label]) / 3, abs=0.5)
    for clip in source.test_clips()[::100]:
        (frame,) = clip.read()
        assert frame.shape == (128, 128, 3)


def test_accents_are_normalised_as_the_learner_does(tmp_path: Path) -> None:
    """macOS stores `é` as two characters, Linux as one: the same class, and the same split."""
    splits = []
    for form in ("NFC", "NFD"):
        for name in ("thé", "tha", "thz"):
            add_images(tmp_path / form / unicodedata.normalize(form, name), 12)
        source = open_source(f"folder:{tmp_path / form}", seed=1)
        assert source.classes == ("tha", "thz", "th\u00e9")
        splits.append(names(source))
    assert splits[0] == splits[1]
    add_images(tmp_path / "NFC" / "the\u0301", 3)
    with pytest.raises(DataError, match="got two named 'thé' whose accents are encoded diff"):
        open_source(f"folder:{tmp_path / 'NFC'}")


@pytest.mark.parametrize("name", ["x" * 201, "two\nlines", " "])
def test_a_folder_name_that_cannot_be_a_label(name: str, tmp_path: Path) -> None:
    add_images(tmp_path / name, 3)
    with pytest.raises(DataError, match=r"one line of at most 200 characters, got .*; rename it"):
        open_source(f"folder:{tmp_path}")
