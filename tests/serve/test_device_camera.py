"""The device's own camera: answers, lessons, and a cable that is pulled."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from lrtflite.errors import CameraError
from running_service import PATIENCE, Running, events_of, frames_of

Serve = Callable[..., Running]


class FakeCamera:
    """Show frames of a colour at 50 frames a second, until it is unplugged."""

    def __init__(self) -> None:
        self.colour = "red"
        self.unplugged = threading.Event()
        self.opened = 0
        self._pause = threading.Event()

    def open(self, source: str, **options: object) -> FakeCamera:
        self.opened += 1
        if self.unplugged.is_set():
            raise CameraError(f"Expected a camera at {source}, got none", "check the cable")
        return self

    def next(self) -> NDArray[np.uint8]:
        self._pause.wait(0.02)
        if self.unplugged.is_set():
            raise CameraError("Expected more pictures, got the end", "check the cable")
        [frame] = frames_of(self.colour, 1, seed=np.random.default_rng().integers(1 << 30))
        wide = np.zeros((240, 320, 3), np.uint8)
        wide[56:184, 96:224] = frame
        return wide

    def close(self) -> None:
        pass


@pytest.fixture
def camera(monkeypatch: pytest.MonkeyPatch) -> FakeCamera:
    fake = FakeCamera()
    monkeypatch.setattr("lrtflite_serve.service.device.open_camera", fake.open)
    monkeypatch.setattr("lrtflite_serve.service.device.AGAIN", 0.05)
    return fake


def test_pictures_are_shown_as_they_come(camera: FakeCamera, serving: Serve) -> None:
    served = serving(camera="fake")
    assert served.http.get("/api").json()["camera"] == "fake"
    first = served.http.get("/api/camera/frame")
    assert first.headers["content-type"] == "image/jpeg"
    assert Image.open(io.BytesIO(first.content)).size == (320, 240)
    number = int(first.headers["x-frame"])
    second = served.http.get(f"/api/camera/frame?after={number}")
    assert int(second.headers["x-frame"]) > number


def test_a_lesson_ends_by_itself_and_answers_follow(camera: FakeCamera, serving: Serve) -> None:
    served = serving(camera="fake")
    with served.http.stream("GET", "/api/events") as answer:
        page = events_of(answer.iter_lines())
        next(page)
        begun = served.http.post("/api/teach", json={"label": "mug", "seconds": 0.5, "fps": 20})
        assert begun.status_code == 202
        other = served.http.post("/api/lessons", json={"label": "hat"})
        assert other.status_code == 409
        states = []
        for kind, data in page:
            if kind == "lesson":
                states.append(data["state"])
            if kind == "lesson" and data["state"] == "learned":
                frames = data["report"]["frames"]
                break
        assert states == ["recording", "learning", "learned"]
        assert 3 <= frames <= 11
        settled = next(
            data
            for kind, data in page
            if kind == "answer" and (data["settled"] or {}).get("kind") == "answer"
        )
    assert settled["settled"]["label"] == "mug"


def test_a_lesson_of_the_device_is_cancelled(camera: FakeCamera, serving: Serve) -> None:
    served = serving(camera="fake")
    lesson = served.http.post("/api/teach", json={"label": "mug"}).json()["id"]
    assert served.send(lesson, frames_of("red", 1)[0]).status_code == 409
    assert served.http.delete(f"/api/lessons/{lesson}").status_code == 200
    assert served.labels() == []
    assert served.http.post("/api/teach", json={"label": "mug"}).status_code == 202


def test_a_pulled_cable_fails_the_lesson_and_comes_back(camera: FakeCamera, serving: Serve) -> None:
    served = serving(camera="fake")
    with served.http.stream("GET", "/api/events") as answer:
        page = events_of(answer.iter_lines())
        next(page)
        served.http.post("/api/teach", json={"label": "mug", "seconds": 60})
        camera.unplugged.set()
        heard: dict[str, str | None] = {}
        while "failed" not in heard.values() or "lost" not in heard.values():
            kind, data = next(page)
            heard[kind] = data.get("state")
        assert served.http.get("/api/camera/frame?after=0").status_code == 503
        again = served.http.post("/api/teach", json={"label": "mug"})
        assert (again.status_code, again.json()["error"]["kind"]) == (503, "CameraError")
        assert served.labels() == []
        camera.unplugged.clear()
        while next(page) != ("camera", {"state": "found"}):
            pass
    assert served.http.get("/api/camera/frame").status_code == 200


def test_no_camera(served: Running) -> None:
    for answer in (
        served.http.get("/api/camera/frame"),
        served.http.post("/api/teach", json={"label": "mug"}),
    ):
        assert (answer.status_code, answer.json()["error"]["kind"]) == (503, "CameraError")


@pytest.mark.parametrize("fields", [{"seconds": 0}, {"fps": 1e9}, {"seconds": "5"}, {}])
def test_wrong_settings_of_a_lesson(
    camera: FakeCamera, serving: Serve, fields: dict[str, object]
) -> None:
    served = serving(camera="fake")
    target = {"label": "mug"} if fields else {}
    assert served.http.post("/api/teach", json={**target, **fields}).status_code == 400


def test_a_camera_that_is_missing_leaves_no_state(serving: Serve, tmp_path: object) -> None:
    from pathlib import Path

    with pytest.raises(CameraError):
        serving(camera=str(Path(str(tmp_path)) / "none.mp4"))
    assert list(Path(str(tmp_path)).iterdir()) == []
    assert PATIENCE
