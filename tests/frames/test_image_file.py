"""read_image: a picture of any kind becomes an upright RGB frame."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import lrtflite
from lrtflite import read_image
from lrtflite.data.media import read_frames
from lrtflite.errors import DataError, InputError, MissingExtra
from lrtflite.frames.checks import check_no_path

RED, GREEN, BLUE, WHITE = [255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]


def save(image: Image.Image, path: Path) -> Path:
    image.save(path)
    return path


def test_16_bit_grey_keeps_its_shades(tmp_path: Path) -> None:
    grey = np.array([[0x0000, 0x40FF], [0x8000, 0xFFFF]], np.uint16)
    path = save(Image.fromarray(grey), tmp_path / "a.png")
    expected = [[[0] * 3, [0x40] * 3], [[0x80] * 3, [0xFF] * 3]]
    assert read_image(path, 2).tolist() == expected


def test_a_palette_is_looked_up(tmp_path: Path) -> None:
    image = Image.new("P", (2, 2))
    image.putpalette([*RED, *GREEN, *BLUE, *WHITE])
    image.putdata([3, 2, 1, 0])
    path = save(image, tmp_path / "a.png")
    assert read_image(path, 2).tolist() == [[WHITE, BLUE], [GREEN, RED]]


def test_transparency_is_white(tmp_path: Path) -> None:
    image = Image.new("RGBA", (2, 2))
    image.putdata([(255, 0, 0, 255), (255, 0, 0, 0), (0, 0, 0, 51), (0, 0, 255, 255)])
    path = save(image, tmp_path / "a.png")
    # A fifth of black over four fifths of white is 204.
    assert read_image(path, 2).tolist() == [[RED, WHITE], [[204] * 3, BLUE]]


def test_cmyk_becomes_rgb(tmp_path: Path) -> None:
    image = Image.new("CMYK", (2, 2))
    image.putdata([(0, 255, 255, 0), (255, 0, 255, 0), (0, 0, 0, 0), (0, 0, 0, 255)])
    path = save(image, tmp_path / "a.tif")
    assert read_image(path, 2).tolist() == [[RED, GREEN], [WHITE, [0, 0, 0]]]


def test_exif_turns_it_upright(tmp_path: Path) -> None:
    image = Image.new("RGB", (2, 2))
    image.putdata([tuple(colour) for colour in (RED, GREEN, BLUE, WHITE)])
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned a quarter to the right
    image.save(tmp_path / "a.png", exif=exif)
    assert read_image(tmp_path / "a.png", 2).tolist() == [[BLUE, RED], [WHITE, GREEN]]


def test_it_is_cropped_and_resized_as_the_data_reader_does(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (30, 47, 3), dtype=np.uint8)
    path = save(Image.fromarray(noise), tmp_path / "a.png")
    frame = read_image(str(path), 16)
    assert frame.shape == (16, 16, 3)
    assert frame.dtype == np.uint8
    np.testing.assert_array_equal(frame, lrtflite.fit_frame(noise, 16))
    np.testing.assert_array_equal(frame, next(read_frames(path, (0,), 16)))


@pytest.mark.parametrize("name", ["broken.png", "missing.png", "."])
def test_what_cannot_be_read_is_named_in_one_line(name: str, tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(b"no picture")
    with pytest.raises(DataError, match="Expected a readable image, got ") as caught:
        read_image(tmp_path / name, 4)
    assert str(tmp_path / name) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_not_a_path_is_refused() -> None:
    with pytest.raises(InputError, match="Expected the path of a picture, got ndarray"):
        read_image(np.zeros((4, 4, 3), np.uint8), 4)  # type: ignore[arg-type]


def test_pillow_is_named_where_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtra, match=r"Pillow is not installed; .*lrtflite\[device\]"):
        read_image(tmp_path / "a.png", 4)


def test_a_path_in_place_of_a_frame_is_explained() -> None:
    with pytest.raises(InputError, match=r"lrtflite\.read_image\(path, size\)"):
        check_no_path("mug.jpg")
