"""The ROS 2 example without ROS: images of every encoding, lessons, undo and forget."""

from __future__ import annotations

import array
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from camera_process import ROOT
from lrtflite import InputError, Learner
from waiting import wait

sys.path.insert(0, str(ROOT / "examples"))
from ros2_image import ENCODINGS, rgb_picture
from ros2_node import Classifier

RGB = np.random.default_rng(0).integers(0, 256, (4, 6, 3)).astype(np.uint8)


def message(encoding: str, rows: np.ndarray, *, padding: int = 0, **changes: Any) -> Any:
    """Return an image whose rows (height, bytes) end with bytes that mean nothing."""
    height, length = rows.shape
    padded = np.full((height, length + padding), 77, np.uint8)
    padded[:, :length] = rows
    fields = {
        "height": height,
        "width": 6,
        "encoding": encoding,
        "is_bigendian": 0,
        "step": length + padding,
        "data": array.array("B", padded.tobytes()),
    }
    return SimpleNamespace(**{**fields, **changes})


def rows(pixels: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(pixels).reshape(len(pixels), -1)


@pytest.mark.parametrize("padding", [0, 5])
@pytest.mark.parametrize(
    ("encoding", "pixels"),
    [
        ("rgb8", RGB),
        ("bgr8", RGB[..., ::-1]),
        ("8UC3", RGB[..., ::-1]),
        ("rgba8", np.concatenate([RGB, np.full((4, 6, 1), 9, np.uint8)], axis=2)),
        ("bgra8", np.concatenate([RGB[..., ::-1], np.full((4, 6, 1), 9, np.uint8)], axis=2)),
    ],
)
def test_colours(encoding: str, pixels: np.ndarray, padding: int) -> None:
    found = rgb_picture(message(encoding, rows(pixels), padding=padding))
    np.testing.assert_array_equal(found, RGB)
    assert found.dtype == np.uint8


@pytest.mark.parametrize("encoding", ["mono8", "8UC1"])
def test_grey(encoding: str) -> None:
    grey = RGB[..., 0]
    found = rgb_picture(message(encoding, grey, padding=3))
    np.testing.assert_array_equal(found, np.stack([grey] * 3, axis=-1))


@pytest.mark.parametrize(("bigendian", "order"), [(0, "<u2"), (1, ">u2")])
def test_grey_of_16_bits(bigendian: int, order: str) -> None:
    deep = np.arange(24, dtype=np.uint16).reshape(4, 6) * 2000
    pixels = rows(deep.astype(order).view(np.uint8))
    found = rgb_picture(message("mono16", pixels, is_bigendian=bigendian))
    np.testing.assert_array_equal(found[..., 1], deep >> 8)


# Colours in YUV of BT.601, as its table gives them.
BARS = {
    (235, 128, 128): (255, 255, 255),
    (16, 128, 128): (0, 0, 0),
    (81, 90, 240): (255, 0, 0),
    (145, 54, 34): (0, 255, 0),
    (41, 240, 110): (0, 0, 255),
    (126, 128, 128): (128, 128, 128),
}


@pytest.mark.parametrize(
    ("encoding", "order"),
    [("uyvy", "UYVZ"), ("yuv422", "UYVZ"), ("yuyv", "YUZV"), ("yuv422_yuy2", "YUZV")],
)
def test_yuv(encoding: str, order: str) -> None:
    for (y, u, v), expected in BARS.items():
        pair = [{"Y": y, "Z": y, "U": u, "V": v}[each] for each in order]
        pixels = np.tile(np.array(pair, np.uint8), (4, 3))
        found = rgb_picture(message(encoding, pixels, padding=4)).astype(int)
        assert np.abs(found - expected).max() <= 2


def test_two_pixels_of_yuv_share_their_colour_and_not_their_light() -> None:
    found = rgb_picture(message("yuyv", np.tile(np.array([16, 128, 235, 128], np.uint8), (4, 3))))
    np.testing.assert_array_equal(found[0, :, 0], [0, 255] * 3)


def test_a_last_row_without_padding() -> None:
    whole = message("rgb8", rows(RGB), padding=5)
    whole.data = whole.data[:-5]
    np.testing.assert_array_equal(rgb_picture(whole), RGB)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"encoding": "bayer_rggb8"}, "image encoding of rgb8, .*, got 'bayer_rggb8'"),
        ({"encoding": "rgb8\x1b"}, r"got 'rgb8\\x1b'"),
        ({"step": 17}, "step of 17"),
        ({"height": 5}, "5 rows of 18 bytes"),
        ({"height": 0}, "0 rows"),
        ({"width": 0}, "image of 0 x 4"),
        ({"data": b""}, "got 0 bytes"),
        ({"encoding": "uyvy", "width": 5}, "even width for uyvy, got 5"),
    ],
)
def test_images_that_do_not_fit(changes: dict[str, Any], match: str) -> None:
    image = message("rgb8", rows(RGB))
    vars(image).update(changes)
    with pytest.raises(InputError, match=match):
        rgb_picture(image)


def test_every_encoding_was_tried() -> None:
    tried = {"rgb8", "bgr8", "8UC3", "rgba8", "bgra8", "mono8", "8UC1", "mono16"}
    assert set(ENCODINGS) - tried == {"uyvy", "yuv422", "yuyv", "yuv422_yuy2", "16UC1"}


def view(colour: int) -> Any:
    """Return an image of stripes in one colour, a little larger than a frame."""
    pixels = np.zeros((140, 160, 3), np.uint8)
    pixels[::4, :, colour] = 200
    pixels[:, ::6] = 40 * colour
    return message("rgb8", rows(pixels), width=160)


@pytest.fixture
def classifier(demo: Path, tmp_path: Path) -> Iterator[Classifier]:
    made = Classifier(Learner.open(demo, tmp_path / "state"), seconds=0.3, fps=50)
    yield made
    made.close()


def taught(classifier: Classifier, label: str, image: Any) -> str:
    assert classifier.teach(label) == f"show {label} for 0.3 s"

    def ended() -> str | None:
        classifier.see(image)
        return classifier.ended()

    line = wait(ended)
    assert isinstance(line, str)
    return line


def test_a_lesson_is_recorded_from_images_and_taken_back(classifier: Classifier) -> None:
    assert classifier.see(view(0)) == []
    assert taught(classifier, "red", view(0)).startswith("learned red from ")
    assert taught(classifier, "blue", view(2)).startswith("learned blue from ")
    for colour, label in ((0, "red"), (2, "blue")):
        for _ in range(20):
            guesses = classifier.see(view(colour))
        assert guesses[0].label == label
        assert classifier.answer == label
    assert classifier.undo() == "took the last change back"
    assert [guess.label for guess in classifier.see(view(2))] == ["red"]
    assert classifier.forget("red") == "forgot red"
    assert classifier.see(view(0)) == []


def test_what_cannot_be_is_said(classifier: Classifier) -> None:
    with pytest.raises(InputError, match="set the parameter `label`"):
        classifier.teach(" ")
    classifier.teach("red")
    for work in (classifier.undo, lambda: classifier.teach("blue")):
        with pytest.raises(InputError, match="Expected no lesson, got one about red"):
            work()
    # No image comes, and the lesson ends all the same.
    line = wait(classifier.ended)
    assert "did not learn red" in str(line)


def test_without_ros_one_line_says_so() -> None:
    command = [sys.executable, str(ROOT / "examples" / "ros2_node.py")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("Expected ROS 2 with vision_msgs, got none")
    assert len(done.stderr.splitlines()) == 1
