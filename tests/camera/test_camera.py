"""A camera hands out its newest picture, and says when it is lost."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from lrtflite import Camera, CameraError
from lrtflite.camera import camera as camera_module
from lrtflite.camera.camera import Pictures
from lrtflite.camera.sources import endless


def shade(level: int) -> np.ndarray:
    return np.full((48, 64, 3), level, np.uint8)


def level(camera: Camera) -> int:
    picture = camera.next()
    assert picture is not None
    return int(picture[0, 0, 0])


def test_the_newest_picture_is_handed_out() -> None:
    taken, read = threading.Event(), threading.Event()

    def pictures() -> Pictures:
        yield shade(1)
        taken.wait(5)
        yield from (shade(2), shade(3), shade(4))
        read.set()

    camera = Camera(pictures())
    assert level(camera) == 1
    taken.set()
    read.wait(5)
    assert level(camera) == 4, "2 and 3 are old"
    assert camera.next() is None
    camera.close()


def test_a_camera_that_stops_or_hangs_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    camera = Camera(endless((shade(n) for n in range(1)), "/dev/video0"))
    assert camera.next() is not None
    with pytest.raises(CameraError, match="got the end of /dev/video0; check the camera"):
        camera.next()
    monkeypatch.setattr(camera_module, "PATIENCE", 0.05)
    forever = threading.Event()

    def hang() -> Pictures:
        forever.wait(5)
        yield shade(0)

    camera = Camera(hang())
    with pytest.raises(CameraError, match=r"Expected a picture, got none for 0\.05 s"):
        camera.next()
    forever.set()
    camera.close()


def test_closing_releases_the_camera() -> None:
    released = threading.Event()

    def pictures() -> Pictures:
        try:
            while True:
                yield shade(0)
        finally:
            released.set()

    camera = Camera(pictures())
    camera.next()
    camera.close()
    assert released.is_set()
