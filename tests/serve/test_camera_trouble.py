"""Lessons of the device's camera that cannot end well still end, and the camera goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lrtflite.errors import CameraError, InputError, LrtfliteError, StateError
from lrtflite_serve.service.device import DeviceCamera
from running_service import SIZE, Running
from waiting import wait

Serve = Callable[..., Running]


class SteadyCamera:
    """Show the same grey picture 100 times a second."""

    def __init__(self) -> None:
        self.closed = 0
        self._pause = threading.Event()

    def next(self) -> NDArray[np.uint8]:
        self._pause.wait(0.01)
        return np.full((SIZE, SIZE, 3), 120, np.uint8)

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def camera(monkeypatch: pytest.MonkeyPatch) -> SteadyCamera:
    fake = SteadyCamera()
    monkeypatch.setattr("lrtflite_serve.service.device.open_camera", lambda source: fake)
    return fake


def state_of(served: Running, lesson: str) -> str:
    state: str = served.http.get(f"/api/lessons/{lesson}").json()["state"]
    return state


def test_a_state_that_cannot_be_opened_is_the_error_with_a_camera_too(
    camera: SteadyCamera, serving: Serve, tmp_path: Path
) -> None:
    (tmp_path / "state").write_text("no folder")
    with pytest.raises(LrtfliteError):
        serving(camera="fake")
    assert camera.closed


def test_a_lesson_that_is_too_long_is_refused(camera: SteadyCamera, serving: Serve) -> None:
    served = serving(camera="fake")
    answer = served.http.post("/api/teach", json={"label": "mug", "seconds": 600, "fps": 10})
    assert answer.status_code == 400
    assert "1,000" in answer.json()["error"]["problem"]
    assert served.begin_status("mug") == 201
    with pytest.raises(InputError, match="1,000"):
        serving(seconds=600, fps=5)


def test_a_frame_that_fails_ends_the_lesson(
    camera: SteadyCamera, serving: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lrtflite_serve.service.recording.MAX_FRAMES", 3)
    served = serving(camera="fake")
    begun = served.http.post("/api/teach", json={"label": "mug", "seconds": 60, "fps": 16})
    lesson = begun.json()["id"]
    wait(lambda: state_of(served, lesson) == "failed", "the end of the lesson")
    assert served.begin_status("mug") == 201


def test_a_camera_that_is_lost_while_a_lesson_begins_leaves_no_lesson(
    camera: SteadyCamera, serving: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(self: DeviceCamera, *given: Any) -> None:
        raise CameraError("The camera is gone", "check its cable")

    monkeypatch.setattr(DeviceCamera, "teach", lost)
    served = serving(camera="fake")
    assert served.http.post("/api/teach", json={"label": "mug"}).status_code == 503
    assert served.begin_status("mug") == 201


class LateRecording:
    """A cancelled lesson; while its frame is refused, the next lesson begins."""

    seconds, frames, waiting, is_over, failure = 1.0, 0, 0, False, None

    def __init__(self, then: Callable[[], None]) -> None:
        self._then = then

    def add(self, frame: object) -> None:
        self._then()
        raise StateError("The lesson was cancelled", "teach it again")


def test_the_end_of_a_lesson_does_not_end_the_next_one(camera: SteadyCamera) -> None:
    device = DeviceCamera("fake")
    ended: list[Any] = []
    second: Any = LateRecording(lambda: None)
    first: Any = LateRecording(lambda: device.teach(second, 0.5, 5.0, ended.append))
    device.teach(first, 60.0, 5.0, ended.append)
    device.start(SIZE, answer=lambda frame: None, publish=lambda kind, data: None)
    try:
        wait(lambda: second in ended, "the second lesson")
    finally:
        device.close()


def test_an_answer_that_fails_does_not_end_the_camera(camera: SteadyCamera) -> None:
    asked: list[object] = []

    def answer(frame: object) -> None:
        asked.append(frame)
        raise InputError("This learner has learned nothing yet", "teach it")

    device = DeviceCamera("fake")
    device.start(SIZE, answer=answer, publish=lambda kind, data: None)
    try:
        wait(lambda: len(asked) > 2, "more answers")
        assert device.problem is None
    finally:
        device.close()
    assert camera.closed


def test_an_unexpected_error_of_a_camera_counts_as_a_lost_one(
    camera: SteadyCamera, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lrtflite_serve.service.device.AGAIN", 0.05)
    device = DeviceCamera("fake")
    told: list[str] = []
    steady, failures = camera.next, [OSError(19, "No such device")]

    def fails() -> NDArray[np.uint8]:
        if failures:
            raise failures.pop()
        return steady()

    monkeypatch.setattr(camera, "next", fails)
    device.start(SIZE, answer=lambda f: None, publish=lambda kind, data: told.append(data["state"]))
    try:
        wait(lambda: told == ["lost", "found"], "the camera")
    finally:
        device.close()
