"""A stream written as pictures and lists is the stream that `core50:PATH` reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from coloured_pictures import draw_pictures
from coloured_source import ColouredSource
from lrtflite.data import Batch, ListedSource, StreamOptions, make_stream, ni_stream, open_source
from lrtflite.data.core50.exporting import export_stream
from lrtflite.errors import DataError


def content(batch: Batch) -> list[tuple[int, bytes]]:
    """Return label and pixels of each frame, in order."""
    return [(label, frame.tobytes()) for label, frame in zip(batch.labels, batch.frames())]


def test_videos_come_back_session_by_session(tmp_path: Path) -> None:
    source = ColouredSource(size=8, clips=3, frames=5)
    stream = make_stream(source, StreamOptions(first_classes=2, visits=3, batch_frames=4))
    made = export_stream(source, stream, tmp_path / "out")
    assert (made.sessions, made.classes, made.train_frames, made.test_frames) == (11, 4, 48, 20)
    again = open_source(made.spec, size=8)
    assert isinstance(again, ListedSource)
    assert again.protocol == "exported stream of 11 run 0, 4 of 50 classes"
    assert [content(batch) for batch in make_stream(again)] == [content(b) for b in stream]
    tests = [[f.tobytes() for c in s.test_clips() for f in c.read()] for s in (source, again)]
    assert tests[0] == tests[1]


def test_pictures_come_back_in_any_protocol(tmp_path: Path) -> None:
    things = draw_pictures(tmp_path / "things", classes=3, images=12)
    source = open_source(f"folder:{things}", size=16)
    for name, stream in (
        ("nic", make_stream(source, StreamOptions(first_classes=1, visits=4))),
        ("ni", ni_stream(source, StreamOptions(visits=4))),
    ):
        made = export_stream(source, stream, tmp_path / name)
        again = open_source(made.spec, size=16)
        assert [content(batch) for batch in make_stream(again)] == [content(b) for b in stream]
        # Without the lists, the same frames are held out.
        scanned = open_source(f"core50:{made.path}?protocol=nic&classes=3", size=16)
        assert sum(clip.length for clip in scanned.train_clips()) == made.train_frames
        assert sum(clip.length for clip in scanned.test_clips()) == made.test_frames


def test_lines_have_the_form_of_the_published_lists(tmp_path: Path) -> None:
    source = ColouredSource(size=4, clips=2, frames=2)
    stream = make_stream(source, StreamOptions(first_classes=4, visits=2))
    made = export_stream(source, stream, tmp_path / "out")
    run = made.path / "batches_filelists" / "NIC_v2_5" / "run0"
    first = (run / "train_batch_00_filelist.txt").read_text().splitlines()
    assert first[:3] == [
        "s1/o1/C_01_01_000.png 0",
        "s1/o1/C_01_01_001.png 0",
        "s1/o2/C_01_02_000.png 1",
    ]
    assert (run / "test_filelist.txt").read_text().splitlines()[:1] == ["s3/o1/C_03_01_000.png 0"]
    named = (made.path / "classes.txt").read_text().splitlines()
    assert named == ["0 red", "1 green", "2 blue", "3 grey"]
    label, pixels = content(stream[0])[0]
    with Image.open(made.path / "s1" / f"o{label + 1}" / "C_01_01_000.png") as image:
        assert np.asarray(image).tobytes() == pixels


def test_a_layout_that_cannot_hold_it(tmp_path: Path) -> None:
    source = ColouredSource(size=4, clips=1, frames=2)
    stream = make_stream(source, StreamOptions(first_classes=4))
    with pytest.raises(DataError, match=r"each frame of red/0 in one session, got frame 0 in two"):
        export_stream(source, [*stream, *stream], tmp_path / "out")
    many = ColouredSource(size=4)
    many.classes = tuple(f"class {k}" for k in range(51))
    with pytest.raises(DataError, match=r"at most 50 classes.*, got 51.*classes=50"):
        export_stream(many, [], tmp_path / "out")
    long = ColouredSource(size=1, clips=97, frames=2)
    visits = make_stream(long, StreamOptions(first_classes=4, visits=97))
    with pytest.raises(DataError, match=r"at most 96 scenes of a class"):
        export_stream(long, visits, tmp_path / "out")
    with pytest.raises(DataError, match=r"at most 1,000 test frames in a third"):
        export_stream(ColouredSource(size=1, clips=1, frames=1001), [], tmp_path / "out")
    assert not list(tmp_path.iterdir()), "nothing is left"


def test_a_folder_with_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match=r"Expected a new or empty folder, got"):
        export_stream(ColouredSource(size=4), [], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_failure_leaves_no_folder(tmp_path: Path) -> None:
    source = ColouredSource(size=4)
    stream = make_stream(source, StreamOptions(first_classes=2))

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_stream(source, stream, tmp_path / "out", on_progress=stop)
    assert not list(tmp_path.iterdir())
