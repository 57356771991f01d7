"""Sources of pictures: files, cameras of every kind, and what goes wrong with them."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import av
import numpy as np
import pytest

from lrtflite import Camera, CameraError, InputError
from lrtflite.camera import sources

RED = np.broadcast_to(np.array([255, 0, 0], np.uint8), (48, 64, 3))


def shown(camera: Camera) -> np.ndarray:
    picture = camera.next()
    assert picture is not None
    return picture


def shade(level: int) -> np.ndarray:
    return np.full((48, 64, 3), level, np.uint8)


def test_a_file_is_decoded_with_its_own_times(tmp_path: Path) -> None:
    path, ticks = str(tmp_path / "a.mkv"), [0, 100, 700, 750]
    with av.open(path, "w") as container:
        stream = container.add_stream("mpeg4", rate=1000)
        stream.height, stream.width = 48, 64
        for tick in ticks:
            frame = av.VideoFrame.from_ndarray(shade(50 + tick // 5), format="rgb24")
            frame.pts = tick
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    times, pictures = zip(*sources.decoded(path))
    assert times == pytest.approx([0, 0.1, 0.7, 0.75], abs=1e-3)
    levels = [float(picture.mean()) for picture in pictures]
    assert levels == pytest.approx([50, 70, 190, 200], abs=5)


@pytest.mark.parametrize(("speed", "expected"), [(1, [0, 0.05, 0.3]), (5, [0, 0.01, 0.06])])
def test_pictures_arrive_at_their_own_times(speed: float, expected: list[float]) -> None:
    # The clock of a file may begin anywhere.
    timed = [(7.0, shade(1)), (7.05, shade(2)), (7.3, shade(3))]
    start, arrived = time.monotonic(), []
    for picture in sources.at_its_own_pace(timed, speed=speed):
        arrived.append((time.monotonic() - start, int(picture[0, 0, 0])))
    assert [level for _, level in arrived] == [1, 2, 3]
    for (when, _), due in zip(arrived, expected):
        assert due - 1e-3 <= when < due + 0.2  # a busy machine is late, never early


def test_a_long_pause_is_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "LONGEST_PAUSE", 0.05)
    timed = [(0.0, shade(1)), (3600.0, shade(2)), (3600.04, shade(3))]
    start = time.monotonic()
    assert len(list(sources.at_its_own_pace(timed, speed=1))) == 3
    assert 0.09 <= time.monotonic() - start < 1


@pytest.mark.parametrize("content", [None, b"", b"not a video"])
def test_a_broken_file_is_one_line(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(
        CameraError,
        match=rf"^Expected a readable video or camera, got {path} \([^\n]+\); check [^\n]+$",
    ):
        list(sources.decoded(str(path)))


def test_a_file_without_a_video_stream_is_refused(tmp_path: Path) -> None:
    with av.open(str(tmp_path / "a.wav"), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=8000)
        sound = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), layout="mono")
        sound.sample_rate = 8000
        container.mux(stream.encode(sound))
    with pytest.raises(CameraError, match=r"got .*a\.wav without a video stream; give another"):
        list(sources.decoded(str(tmp_path / "a.wav")))


def test_opencv_pictures_become_rgb(monkeypatch: pytest.MonkeyPatch) -> None:
    released: list[str] = []

    def capture(source: str) -> SimpleNamespace:
        reads = iter([(True, RED[:, :, ::-1]), (False, None)])
        return SimpleNamespace(read=lambda: next(reads), release=lambda: released.append(source))

    fake = ModuleType("cv2")
    vars(fake)["VideoCapture"] = capture
    monkeypatch.setitem(sys.modules, "cv2", fake)
    found = {"av": None, "cv2": object()}
    monkeypatch.setattr(sources, "find_spec", found.get)
    camera = sources.open_camera("/dev/video3")
    assert np.array_equal(shown(camera), RED)
    with pytest.raises(CameraError, match="got the end of /dev/video3"):
        camera.next()
    camera.close()
    assert released == ["/dev/video3"]


class Picamera2:
    """A camera that sees red. An array of its format BGR888 has the order R, G, B."""

    found: ClassVar[list[dict[str, Any]]] = [{"Model": "imx708", "Num": 0}]

    @classmethod
    def global_camera_info(cls) -> list[dict[str, Any]]:
        return cls.found

    def __enter__(self) -> Picamera2:
        return self

    def __exit__(self, *_: object) -> None:
        self.main: dict[str, Any] = {}

    def create_video_configuration(self, main: dict[str, Any]) -> dict[str, Any]:
        return main

    def configure(self, main: dict[str, Any]) -> None:
        self.main = main

    def start(self) -> None: ...

    def capture_array(self) -> np.ndarray:
        return {"BGR888": RED, "RGB888": RED[:, :, ::-1]}[self.main["format"]]


def test_raspberry_pi_pictures_are_rgb(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = ModuleType("picamera2")
    vars(fake)["Picamera2"] = Picamera2
    monkeypatch.setitem(sys.modules, "picamera2", fake)
    camera = sources.open_camera("picamera2")
    assert np.array_equal(shown(camera), RED)
    camera.close()
    monkeypatch.setattr(Picamera2, "found", [])
    with pytest.raises(CameraError, match="Raspberry Pi camera, got none; check its cable"):
        sources.open_camera("picamera2").next()


def test_the_first_camera_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "FIRST_CAMERA", str(tmp_path / "video0"))
    monkeypatch.setattr(sources, "find_spec", {"picamera2": None}.get)
    with pytest.raises(
        CameraError, match=r"video0, got none; connect one, or name a camera or a video"
    ):
        sources.find_camera()
    monkeypatch.setattr(sources, "find_spec", {"picamera2": object()}.get)
    assert sources.find_camera() == "picamera2"
    (tmp_path / "video0").touch()
    assert sources.find_camera() == str(tmp_path / "video0")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "picamera2", None)
    with pytest.raises(CameraError, match="sudo apt install python3-picamera2"):
        next(sources.picamera())
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(CameraError, match=r"PyAV is not installed; run: pip install .*video"):
        next(sources.decoded("/dev/video0"))


@pytest.mark.parametrize("speed", [0, -1, float("nan"), float("inf"), "fast", True])
def test_a_speed_that_is_no_speed_is_refused(speed: Any) -> None:
    with pytest.raises(InputError, match=r"^Expected speed as a number"):
        sources.open_camera("synthetic", speed=speed)
