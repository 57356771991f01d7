"""read_image: a picture of any kind becomes an upright RGB frame."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import lrtflite
from lrtflite import read_image
from lrtflite.data.media import count_frames, read_frames
from lrtflite.errors import DataError, InputError, MissingExtra, UnreadableFile
from lrtflite.frames import image_file
from lrtflite.frames.checks import check_no_path
from lrtflite.frames.image_file import decode_image

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
    with pytest.raises(MissingExtra, match=r"Pillow is not installed; .*\[device\]'"):
        read_image(tmp_path / "a.png", 4)


def test_a_path_in_place_of_a_frame_is_explained() -> None:
    with pytest.raises(InputError, match=r"lrtflite\.read_image\(path, size\)"):
        check_no_path("mug.jpg")


@pytest.mark.parametrize(
    "error",
    [RuntimeError("codec"), NotImplementedError(), MemoryError(), RecursionError(), KeyError(3)],
)
def test_any_error_of_a_decoder_is_an_unreadable_file(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(Image.new("RGB", (2, 2)), tmp_path / "a.png")

    def load(self: Image.Image) -> None:
        raise error

    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", load)
    with pytest.raises(UnreadableFile, match=r"Expected a readable image, got .*a.png \(.+\)"):
        read_image(path, 4)


@pytest.mark.parametrize("suffix", ["png", "bmp", "jpg", "webp"])
def test_the_size_is_checked_before_decoding(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(Image.new("RGB", (40, 30)), tmp_path / f"a.{suffix}")
    monkeypatch.setattr(image_file, "MAX_PIXELS", 1200)
    assert read_image(path, 4).shape == (4, 4, 3)
    monkeypatch.setattr(image_file, "MAX_PIXELS", 1199)
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", lambda self: pytest.fail("decoded"))
    for read in (lambda path: read_image(path, 4), count_frames):
        with pytest.raises(UnreadableFile, match="40 x 30 pixels, more than"):
            read(path)


def test_pillows_own_limits_are_not_heard_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pillow warns above its limit, and raises above twice the limit."""
    path = tmp_path / "a.png"
    Image.new("RGB", (40, 30)).save(path)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1199)
    assert read_image(path, 8).shape == (8, 8, 3)  # warnings are errors in tests
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 599)
    with pytest.raises(UnreadableFile, match=r"a\.png \(more than 134 million pixels\)"):
        read_image(path, 8)


def test_a_frame_larger_than_the_first_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = [Image.new("L", (20, 20), shade) for shade in (0, 255)]
    path = tmp_path / "a.gif"
    frames[0].save(path, save_all=True, append_images=frames[1:])
    content = bytearray(path.read_bytes())
    second = content.index(b"\x2c", content.index(b"\x2c") + 1)
    content[second + 5 : second + 9] = (2000).to_bytes(2, "little") * 2
    path.write_bytes(content)
    monkeypatch.setattr(image_file, "MAX_PIXELS", 20 * 20)
    with pytest.raises(UnreadableFile, match="2000 x 2000 pixels"):
        list(read_frames(path, (0, 1), 4))


def test_no_program_is_started_for_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pillow passes an EPS to Ghostscript, under any file name."""
    path = tmp_path / "a.png"
    Image.new("RGB", (8, 8)).save(path, format="eps")
    monkeypatch.setattr("subprocess.check_call", lambda *words, **_: pytest.fail(f"ran {words}"))
    monkeypatch.setattr("PIL.EpsImagePlugin.gs_binary", "gs")
    with pytest.raises(UnreadableFile, match="EPS"):
        read_image(path, 4)


def test_a_large_photograph_is_not_copied_several_times(tmp_path: Path) -> None:
    """Decoding takes 10 bytes per pixel: Pillow's 4, and twice the frame's 3."""
    program = f"""
import resource
from lrtflite import read_image
read_image({str(save(Image.new("RGB", (8, 8)), tmp_path / "small.jpg"))!r}, 8)
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
read_image({str(save(Image.new("RGB", (4000, 3000)), tmp_path / "large.jpg"))!r}, 8)
print((peak() - before) / 12e6)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert float(done.stdout) < 12


def progressive(scans: int) -> bytes:
    """Return a progressive JPEG whose last scan is there many times."""
    out = io.BytesIO()
    Image.new("RGB", (64, 64), "red").save(out, "JPEG", progressive=True)
    content = out.getvalue()
    last = content[content.rindex(b"\xff\xda") : -2]
    return content[:-2] + last * scans + content[-2:]


def test_a_picture_of_many_scans_is_not_decoded(tmp_path: Path) -> None:
    # At 4096 x 4096 pixels, each scan of 33 bytes took 30 ms.
    path = tmp_path / "scans.jpg"
    path.write_bytes(progressive(20))
    assert read_image(path, 32).shape == (32, 32, 3)
    path.write_bytes(progressive(1000))
    with pytest.raises(UnreadableFile, match="scans, more than 100"):
        read_image(path, 32)
    with pytest.raises(UnreadableFile, match="scans, more than 100"):
        decode_image(path.read_bytes(), 32, formats=("JPEG",))
