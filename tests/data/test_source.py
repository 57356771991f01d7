"""Naming a source on the command line, and reading a clip."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lrtflite.data import Clip, open_source
from lrtflite.errors import DataError, InputError


def read(indices: Sequence[int]) -> Iterator[np.ndarray]:
    return (np.full((1, 1, 3), i, np.uint8) for i in indices)


def test_a_clip_reads_all_or_some_of_its_frames() -> None:
    clip = Clip(0, "mug/a.mp4", 4, read)
    assert [int(f[0, 0, 0]) for f in clip.read()] == [0, 1, 2, 3]
    assert [int(f[0, 0, 0]) for f in clip.read([1, 3])] == [1, 3]
    assert list(clip.read([])) == []


@pytest.mark.parametrize("indices", [[2, 1], [1, 1], [-1, 2], [0, 4]])
def test_a_clip_refuses_indices_it_does_not_have(indices: list[int]) -> None:
    with pytest.raises(InputError, match="ascending frame indices below 4 for mug"):
        Clip(0, "mug/a.mp4", 4, read).read(indices)


@pytest.mark.parametrize(
    ("spec", "meant"),
    [
        ("cifar", None),
        ("", None),
        ("x:y", None),
        ("folder", "folder:PATH"),
        ("folder:", "folder:PATH"),
        ("core50:", "core50:PATH"),
        ("synthetic:x", "synthetic"),
        ("sythetic?frames=3", "synthetic?frames=3"),
        ("synthetic-backbon", "synthetic-backbone"),
        ("foldr:pics", "folder:pics"),
        ("Folder:pics?test=0.5", "folder:pics?test=0.5"),
        ("core-50:pics", "core50:pics"),
        ("things", "folder:things"),
        ("./things?classes=2", "folder:./things?classes=2"),
        ("dir:things", "folder:things"),
        ("~/no such pics", "folder:~/no such pics"),
        ("pics/today", "folder:pics/today"),
        ("~nobody-of-this-name", "folder:~nobody-of-this-name"),
        ("a\0b", None),
    ],
)
def test_an_unknown_source_lists_the_known_ones_and_the_likeliest(
    spec: str, meant: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "things").mkdir()
    with pytest.raises(DataError) as caught:
        open_source(spec)
    assert str(caught.value) == (
        "Expected one of synthetic, synthetic-backbone, folder:PATH, core50:PATH as data set, "
        f"got {spec!r}" + (f"; did you mean {meant!r}?" if meant else "")
    )


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            "folder:{}?fraction=0.5",
            "Expected one of test, classes after folder:PATH\\?, got 'fraction'",
        ),
        ("folder:{}?test=half", "Expected a number after folder:PATH\\?test=, got 'half'"),
        ("folder:{}?test=1", "Expected a held-out fraction between 0 and 1, got 1.0"),
        ("folder:{}?test=", "Expected key=value after the \\?"),
        ("core50:{}?stride=0", "Expected stride as a whole number of at least 1, got '0'"),
        ("core50:{}?run=x", "Expected run as a whole number of at least 0, got 'x'"),
        ("core50:{}?protocol=100", "Expected protocol=79, 196, 391 or nic, got '100'"),
        ("synthetic?frames=0", "Expected frames as a whole number of at least 1, got '0'"),
        ("synthetic?clips=1", "Expected one of frames, test_frames, classes after synthetic\\?"),
    ],
)
def test_settings_after_the_question_mark_are_checked(
    spec: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message):
        open_source(spec.format(tmp_path))


def test_size_and_seed_are_checked() -> None:
    with pytest.raises(InputError, match="frame size of at least 1, got 0"):
        open_source("synthetic", size=0)
    with pytest.raises(InputError, match="seed of at least 0, got -1"):
        open_source("synthetic", seed=-1)


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


def test_importing_the_sources_imports_neither_pillow_nor_pyav() -> None:
    code = (
        "import sys, lrtflite.data, lrtflite.data.folder, lrtflite.data.core50\n"
        "print(sorted({'PIL', 'av', 'tensorflow'} & set(sys.modules)))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout.strip() == "[]"
