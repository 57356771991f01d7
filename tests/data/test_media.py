"""Images and videos of every kind become upright RGB frames of one size."""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from lrtflite.data.media import count_frames, read_frames, shorter_side
from lrtflite.errors import DataError, MissingExtra

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


def one(path: Path, size: int = 4) -> np.ndarray:
    (frame,) = read_frames(path, (0,), size)
    assert frame.shape == (size, size, 3)
    assert frame.dtype == np.uint8
    return frame


def corners(frame: np.ndarray) -> list[tuple[int, ...]]:
    """Return the pixels top left, top right, bottom left and bottom right."""
    return [tuple(frame[y, x].tolist()) for y in (0, -1) for x in (0, -1)]


def quarters() -> Image.Image:
    """Draw red and green above blue and white."""
    image = Image.new("RGB", (4, 4))
    for box, colour in {(0, 0): RED, (2, 0): GREEN, (0, 2): BLUE, (2, 2): WHITE}.items():
        image.paste(colour, (*box, box[0] + 2, box[1] + 2))
    return image


def write_video(path: Path, frames: list[np.ndarray], codec: str = "mpeg4") -> None:
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=10)
        stream.height, stream.width = frames[0].shape[:2]
        stream.pix_fmt = "yuv420p"
        for array in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(array, format="rgb24")))
        container.mux(stream.encode())


def greys(count: int) -> list[np.ndarray]:
    return [np.full((64, 64, 3), 20 * i + 20, np.uint8) for i in range(count)]


def levels(path: Path, indices: list[int]) -> list[int]:
    """Return the index in `greys` of each frame; lossy coding changes a level by less than 10."""
    return [round((frame.mean() - 20) / 20) for frame in read_frames(path, indices, 8)]


@pytest.mark.parametrize("suffix", ["png", "bmp", "gif", "webp"])
def test_lossless_formats_keep_their_pixels(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{suffix}"
    options: dict[str, Any] = {"lossless": True} if suffix == "webp" else {}
    quarters().save(path, **options)
    assert count_frames(path) == 1
    np.testing.assert_array_equal(one(path), np.asarray(quarters()))


def test_jpeg_in_any_case_of_its_suffix(tmp_path: Path) -> None:
    Image.new("RGB", (40, 20), (200, 100, 50)).save(tmp_path / "A.JPG", format="jpeg")
    assert np.abs(one(tmp_path / "A.JPG").astype(int) - [200, 100, 50]).max() <= 2


@pytest.mark.parametrize(
    ("orientation", "expected"),
    [
        (1, [RED, GREEN, BLUE, WHITE]),
        (2, [GREEN, RED, WHITE, BLUE]),  # mirrored
        (3, [WHITE, BLUE, GREEN, RED]),  # upside down
        (6, [BLUE, RED, WHITE, GREEN]),  # to be rotated right
        (8, [GREEN, WHITE, RED, BLUE]),  # to be rotated left
    ],
)
def test_exif_orientation_is_honoured(
    orientation: int, expected: list[tuple[int, ...]], tmp_path: Path
) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    quarters().save(tmp_path / "a.png", exif=exif)
    assert corners(one(tmp_path / "a.png")) == expected


def test_every_mode_becomes_rgb(tmp_path: Path) -> None:
    def colour(image: Image.Image, suffix: str = "png") -> tuple[int, ...]:
        path = tmp_path / f"{image.mode.replace(';', '')}.{suffix}"
        jpeg: dict[str, Any] = {"format": "jpeg", "quality": 100}
        image.save(path, **(jpeg if suffix == "jpg" else {}))
        return corners(one(path))[0]

    assert colour(Image.new("L", (4, 4), 77)) == (77, 77, 77)
    assert colour(Image.new("1", (4, 4), 1)) == WHITE
    assert colour(Image.new("RGBA", (4, 4), (0, 0, 255, 255))) == BLUE
    assert colour(Image.new("RGBA", (4, 4), (0, 0, 0, 0))) == WHITE
    assert colour(Image.new("LA", (4, 4), (10, 255))) == (10, 10, 10)
    assert colour(quarters().quantize(8)) == RED
    assert colour(Image.fromarray(np.full((4, 4), 0x8040, np.uint16))) == (0x80,) * 3
    assert colour(Image.new("CMYK", (8, 8), (0, 255, 255, 0)), "jpg") == pytest.approx(RED, abs=3)


def test_an_animation_has_its_frames(tmp_path: Path) -> None:
    for suffix in ("gif", "webp"):
        path = tmp_path / f"a.{suffix}"
        first, *rest = [Image.new("RGB", (4, 4), colour) for colour in (RED, GREEN, BLUE)]
        options: dict[str, Any] = {"lossless": True} if suffix == "webp" else {}
        first.save(path, save_all=True, append_images=rest, duration=100, **options)
        assert count_frames(path) == 3
        frames = list(read_frames(path, (0, 2), 4))
        assert [corners(frame)[0] for frame in frames] == [RED, BLUE]


@pytest.mark.parametrize(
    ("name", "codec"),
    [("a.mp4", "mpeg4"), ("a.mov", "libx264"), ("a.avi", "mpeg4"), ("a.webm", "libvpx")],
)
def test_a_video_has_its_frames(name: str, codec: str, tmp_path: Path) -> None:
    path = tmp_path / name
    write_video(path, greys(11), codec)
    assert count_frames(path) == 11
    assert levels(path, list(range(11))) == list(range(11))
    assert levels(path, [2, 3, 9]) == [2, 3, 9]
    assert levels(path, []) == []


def test_a_video_of_a_phone_held_upright_is_rotated(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    write_video(path, [np.asarray(quarters().resize((64, 64), Image.Resampling.NEAREST))] * 3)
    # The track's matrix for a quarter turn to the right: (x, y) -> (-y, x).
    data = bytearray(path.read_bytes())
    matrix = data.index(b"tkhd") + 4 + 40
    turn = (0, 1 << 16, 0, -1 << 16, 0, 0, 64 << 16, 0, 1 << 30)
    data[matrix : matrix + 36] = struct.pack(">9i", *turn)
    path.write_bytes(data)
    got = np.array(corners(one(path, 8)))
    assert np.abs(got - [BLUE, RED, WHITE, GREEN]).max() < 40


@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.gif", "a.mp4"])
def test_a_file_that_cannot_be_read_is_named(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(b"not a picture")
    with pytest.raises(DataError, match=r"Expected a readable .*; replace or remove it") as caught:
        list(read_frames(path, (0,), 4))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_truncated_image_is_named(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    for suffix in ("jpg", "png", "bmp"):
        path = tmp_path / f"a.{suffix}"
        Image.fromarray(noise).save(path)
        path.write_bytes(path.read_bytes()[:-2000])
        with pytest.raises(DataError, match=f"got {path}"):
            one(path)


def test_a_missing_file_is_named_once(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        one(tmp_path / "a.png")
    assert str(caught.value).count("a.png") == 1


def test_a_truncated_video_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    write_video(path, greys(4))
    with pytest.raises(DataError, match=f"Expected more than 6 frames in {path}, got 4"):
        list(read_frames(path, (1, 6), 8))


def test_a_file_without_a_video_stream_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sound.mkv"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=8000)
        sound = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), layout="mono")
        sound.sample_rate = 8000
        container.mux(stream.encode(sound))
    with pytest.raises(
        DataError, match=r"Expected a video in .*sound.mkv, got a file without a video stream"
    ):
        count_frames(path)


def test_pyav_is_needed_only_for_videos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quarters().save(tmp_path / "a.png")
    monkeypatch.setitem(sys.modules, "av", None)
    one(tmp_path / "a.png")
    with pytest.raises(MissingExtra, match=r"PyAV is not installed; .*\[video\]"):
        count_frames(tmp_path / "a.mp4")
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtra, match=r"Pillow is not installed; .*\[device\]"):
        one(tmp_path / "a.png")


def test_the_shorter_side_of_pictures_and_videos(tmp_path: Path) -> None:
    Image.new("RGB", (7, 5)).save(tmp_path / "a.png")
    Image.new("L", (3, 9)).save(tmp_path / "a.gif")
    write_video(tmp_path / "a.mp4", [np.zeros((64, 96, 3), np.uint8)])
    found = [shorter_side(tmp_path / name) for name in ("a.png", "a.gif", "a.mp4")]
    assert found == [5, 3, 64]
