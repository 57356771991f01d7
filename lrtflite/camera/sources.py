"""Open a camera, a stream or a video file.

/dev/video0    a V4L2 camera, read by PyAV, or by OpenCV if PyAV is missing
picamera2      a Raspberry Pi camera, read by the package picamera2
rtsp://...     a stream, read by PyAV
mug.mp4        a video file, played at its own speed by PyAV
synthetic      drawn videos, without hardware

Each package is imported when the first such source is read.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from lrtflite.arguments import real_number
from lrtflite.camera.camera import Camera, Picture, Pictures
from lrtflite.errors import CameraError, InputError
from lrtflite.system.extras import pip_command

FIRST_CAMERA = "/dev/video0"
# Longest pause between two pictures of a file, in seconds; longer pauses are shortened.
LONGEST_PAUSE = 5.0
SYNTHETIC_FPS = 20


def open_camera(source: str | None, *, speed: float = 1.0) -> Camera:
    """Open a camera, a stream or a video file; None opens the first camera.

    `source` is a device (`/dev/video0`), `picamera2` for a Raspberry Pi camera, the address of a
    stream (`rtsp://...`), the path of a video file, or `synthetic` for drawn videos. `speed` is
    for files: 2 plays twice as fast.
    """
    if real_number("speed", speed) == 0:
        raise InputError("Expected speed as a number above 0, got 0", "give 1 for the file's own")
    source = find_camera() if source is None else source
    if source == "synthetic":
        return Camera(at_its_own_pace(synthetic(), speed=speed))
    if source == "picamera2":
        return Camera(picamera())
    if Path(source).is_file():
        return Camera(at_its_own_pace(decoded(source), speed=speed))
    if not find_spec("av") and find_spec("cv2"):
        return Camera(endless(opencv(source), source))
    return Camera(endless((picture for _, picture in decoded(source)), source))


def find_camera() -> str:
    """Return the first camera; raise CameraError if there is none."""
    if Path(FIRST_CAMERA).exists():
        return FIRST_CAMERA
    if find_spec("picamera2"):
        return "picamera2"
    raise CameraError(
        f"Expected a camera at {FIRST_CAMERA}, got none", "connect one, or name a camera or a video"
    )


def at_its_own_pace(pictures: Iterable[tuple[float, Picture]], *, speed: float) -> Pictures:
    """Yield each (seconds, picture) at its time after the first; `speed` 2 is twice as fast."""
    start = None
    for seconds, picture in pictures:
        start = time.monotonic() - seconds / speed if start is None else start
        pause = start + seconds / speed - time.monotonic()
        if pause > LONGEST_PAUSE:
            start -= pause - LONGEST_PAUSE
            pause = LONGEST_PAUSE
        time.sleep(max(0.0, pause))
        yield picture


def endless(pictures: Pictures, source: str) -> Pictures:
    """Raise CameraError at the end of the pictures: a camera that stops was unplugged."""
    yield from pictures
    raise CameraError(
        f"Expected more pictures, got the end of {source}", "check the camera and its cable"
    )


def decoded(source: str) -> Iterator[tuple[float, Picture]]:
    """Yield the time in seconds and the picture of each frame of a file, camera or stream."""
    try:
        import av
    except ImportError as error:
        raise CameraError(
            f"Cannot read {source}: PyAV is not installed", f"{pip_command('av')}"
        ) from error

    last = 0.0
    try:
        with av.open(source, format="v4l2" if source.startswith("/dev/") else None) as container:
            if not container.streams.video:
                raise CameraError(
                    f"Expected a video, got {source} without a video stream", "give another"
                )
            for frame in container.decode(video=0):
                last = last if frame.time is None else frame.time
                # A phone held upright stores a rotation, counter-clockwise in degrees.
                turns = round(frame.rotation / 90)
                yield last, np.rot90(frame.to_ndarray(format="rgb24"), turns)
    except av.FFmpegError as error:
        raise CameraError(
            f"Expected a readable video or camera, got {source} ({error.strerror})",
            "check the file or the camera",
        ) from error


def opencv(source: str) -> Pictures:
    """Yield the pictures that OpenCV reads from a device or a stream."""
    import cv2

    capture = cv2.VideoCapture(source)
    try:
        while (read := capture.read())[0]:
            yield read[1][:, :, ::-1]  # OpenCV delivers BGR
    finally:
        capture.release()


def picamera() -> Pictures:
    """Yield the pictures of a Raspberry Pi camera."""
    try:
        from picamera2 import Picamera2
    except ImportError:
        raise CameraError(
            "Expected the package picamera2, got none",
            "run: sudo apt install python3-picamera2, "
            "and create the virtual environment with --system-site-packages",
        ) from None
    if not Picamera2.global_camera_info():
        raise CameraError("Expected a Raspberry Pi camera, got none", "check its cable")
    try:
        with Picamera2() as camera:
            # An array of libcamera's format BGR888 has the order R, G, B.
            main = {"size": (640, 480), "format": "BGR888"}
            camera.configure(camera.create_video_configuration(main=main))
            camera.start()
            while True:
                yield camera.capture_array()
    except RuntimeError as error:
        raise CameraError(
            f"Expected pictures of the Raspberry Pi camera, got an error ({error})",
            "check its cable",
        ) from error


def synthetic() -> Iterator[tuple[float, Picture]]:
    """Yield (seconds, picture) of the drawn training videos."""
    from lrtflite.data import open_source

    clips = open_source("synthetic").train_clips()
    for number, picture in enumerate(picture for clip in clips for picture in clip.read()):
        yield number / SYNTHETIC_FPS, picture
