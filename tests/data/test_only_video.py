"""The only video of a class: its last part is held out, after a gap."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from lrtflite.data import FrameSource, open_source, source_notes
from lrtflite.data.folders.only_video import divide
from lrtflite.data.folders.source import FolderSource
from lrtflite.data.media import frames_per_second

THIRD = 1 / 3


def add_animation(path: Path, count: int, duration: int | None = 100) -> None:
    """Write a clip whose frame i has the grey level i."""
    path.parent.mkdir(parents=True, exist_ok=True)
    first, *rest = [Image.new("L", (4, 4), i) for i in range(count)]
    options: dict[str, Any] = {} if duration is None else {"duration": duration}
    if path.suffix == ".webp":
        options["lossless"] = True
    first.save(path, save_all=True, append_images=rest, **options)


def add_video(path: Path, count: int, rate: int) -> None:
    """Write a clip whose frame i has the grey level 2 * i + 20."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=rate)
        stream.width = stream.height = 32
        stream.pix_fmt = "yuv420p"
        for i in range(count):
            pixels = np.full((32, 32, 3), 2 * i + 20, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())


def greys(source: FrameSource) -> tuple[list[int], list[int]]:
    (train,), (test,) = source.train_clips(), source.test_clips()
    first, second = ([int(f[0, 0, 0]) for f in clip.read()] for clip in (train, test))
    return first, second


@pytest.mark.parametrize(
    ("frames", "fraction", "fps", "expected"),
    [
        # A gap of a second: 30 of the 100 frames before the test.
        (150, THIRD, 30.0, (70, 100)),
        # A gap of a tenth of a minute, which is more than a second.
        (1800, THIRD, 30.0, (1020, 1200)),
        # Too short for a gap of a second: half of the frames before the test.
        (30, THIRD, 30.0, (10, 20)),
        # Five frames if the frame rate is unknown, or a tenth.
        (30, THIRD, None, (15, 20)),
        (300, THIRD, None, (170, 200)),
        (100, 0.25, 5.0, (65, 75)),
        (100, 0.99, 5.0, (1, 1)),
        # At least one frame on each side.
        (2, THIRD, 30.0, (1, 1)),
        (3, THIRD, 30.0, (1, 2)),
    ],
)
def test_a_video_is_divided_by_time(
    frames: int, fraction: float, fps: float | None, expected: tuple[int, int]
) -> None:
    assert divide(frames, fraction, fps) == expected


@pytest.mark.parametrize("fps", [None, 0.5, 30.0, 90000.0])
@pytest.mark.parametrize("fraction", [0.001, THIRD, 0.999])
def test_no_side_is_ever_empty(fps: float | None, fraction: float) -> None:
    for frames in range(2, 200):
        stop, start = divide(frames, fraction, fps)
        assert 1 <= stop <= start < frames


@pytest.mark.parametrize("suffix", ["gif", "webp"])
def test_the_gap_of_an_animation_is_on_neither_side(suffix: str, tmp_path: Path) -> None:
    add_animation(tmp_path / "mug" / f"a.{suffix}", 60)
    # 10 frames a second: the last 20 are the test, the 10 before them the gap.
    train, test = greys(FolderSource(tmp_path, size=4))
    assert train == list(range(30))
    assert test == list(range(40, 60))


def test_the_gap_of_a_video_is_a_second(tmp_path: Path) -> None:
    add_video(tmp_path / "mug" / "a.mp4", 90, rate=15)
    assert frames_per_second(tmp_path / "mug" / "a.mp4") == 15
    train, test = greys(FolderSource(tmp_path, size=8))
    assert (len(train), len(test)) == (45, 30)
    # Lossy coding changes a level by less than the 30 levels of the gap.
    assert np.abs(np.array(train) - (2 * np.arange(45) + 20)).max() <= 8
    assert np.abs(np.array(test) - (2 * np.arange(60, 90) + 20)).max() <= 8


def test_a_file_without_a_frame_rate(tmp_path: Path) -> None:
    add_animation(tmp_path / "mug" / "a.gif", 30, duration=None)
    assert frames_per_second(tmp_path / "mug" / "a.gif") is None
    train, test = greys(FolderSource(tmp_path, size=4))
    assert (len(train), len(test)) == (15, 10)


def test_a_note_says_so(tmp_path: Path) -> None:
    def notes(spec: str = "") -> tuple[str, ...]:
        return source_notes(open_source(f"folder:{tmp_path}{spec}", skip_unreadable=True))

    for name in "ab":
        add_animation(tmp_path / "hat" / f"{name}.gif", 6)
    assert notes() == ()
    add_animation(tmp_path / "mug" / "a.gif", 9)
    told = (
        "mug: one video only; its last third, after a gap, is the test: "
        "expect figures to be optimistic."
    )
    assert notes() == (told,)
    assert "its last 25 %, after a gap" in notes("?test=0.25")[0]
    assert notes("?classes=hat") == ()
    for name in ("pen", "toy", "urn"):
        add_animation(tmp_path / name / "a.gif", 9)
    assert notes()[0].startswith("mug, pen, toy and 1 more: one video each; the last third of")
    (tmp_path / "hat" / "b.gif").write_bytes(b"")
    skipped, only = notes()
    assert skipped.startswith("1 unreadable file was left out: hat/b.gif")
    assert only.startswith("hat, mug, pen and 2 more: one video each")
