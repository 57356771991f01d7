"""Lessons: numbers, resuming, one at a time, and no trace of one that is not committed."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from running_service import RAW, Running, frames_of


def wait_for(condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.02)


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_class_is_taught(served: Running) -> None:
    begun = served.http.post("/api/lessons", json={"label": "mug"})
    assert begun.status_code == 201
    assert (begun.json()["label"], begun.json()["slot"], begun.json()["new"]) == ("mug", 0, True)
    lesson = begun.json()["id"]
    for number, frame in enumerate(frames_of("red", 4)):
        answer = served.send(lesson, frame, number).json()
        assert answer["frames"] == number + 1
    result = served.commit(lesson).json()
    assert (result["label"], result["slot"], result["new"], result["frames"]) == ("mug", 0, True, 4)
    assert result["classes"] == served.classes()
    [known] = served.classes()["classes"]
    assert known["thumbnail"] is not None
    thumbnail = served.http.get("/api/classes/0/thumbnail")
    assert thumbnail.headers["content-type"] == "image/jpeg"
    assert thumbnail.content.startswith(b"\xff\xd8")
    assert {key: known[key] for key in ("slot", "label", "pictures", "learned", "kept")} == {
        "slot": 0,
        "label": "mug",
        "pictures": 4,
        "learned": True,
        "kept": 0,
    }


def test_a_commit_that_is_sent_twice_learns_once(served: Running) -> None:
    lesson = served.begin(label="mug")
    served.send(lesson, frames_of("red", 1)[0])
    first, second = served.commit(lesson), served.commit(lesson)
    assert first.status_code == second.status_code == 200
    assert first.json() == second.json()
    assert served.classes()["sessions"] == 1


def test_a_lost_connection_resumes(served: Running) -> None:
    lesson = served.begin(label="mug")
    frames = frames_of("red", 4)
    served.send(lesson, frames[0], 0)
    # The answer to frame 0 was lost, so the client sends it again.
    assert served.send(lesson, frames[0], 0).json()["frames"] == 1
    gap = served.send(lesson, frames[2], 2)
    assert gap.status_code == 409
    assert "frame 1" in gap.json()["error"]["problem"]
    assert served.http.get(f"/api/lessons/{lesson}").json()["frames"] == 1
    for number in (1, 2, 3):
        served.send(lesson, frames[number], number)
    assert served.commit(lesson).json()["frames"] == 4


def test_a_lesson_that_hears_nothing_leaves_no_trace(
    taught: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lrtflite_serve.service.lessons.SILENCE", 0.2)
    folder = Path(taught.settings.state)
    before, classes = files_of(folder), taught.classes()
    lesson = taught.begin(label="mug")
    taught.send(lesson, frames_of("green", 1)[0])
    wait_for(lambda: taught.begin_status("probe") == 201)
    ended = taught.commit(lesson)
    assert ended.status_code == 409
    assert ended.json()["error"]["kind"] == "SessionCancelled"
    assert files_of(folder) == before
    assert taught.classes() == classes


def test_a_cancelled_lesson_leaves_no_trace(taught: Running) -> None:
    folder = Path(taught.settings.state)
    before, classes = files_of(folder), taught.classes()
    lesson = taught.begin(label="mug")
    taught.send(lesson, frames_of("green", 1)[0])
    assert taught.http.delete(f"/api/lessons/{lesson}").json() == classes
    assert taught.send(lesson, frames_of("green", 1)[0]).status_code == 409
    assert files_of(folder) == before
    taught.teach("green")  # another one may begin


def test_two_lessons_at_once(served: Running) -> None:
    lesson = served.begin(label="mug")
    other = served.http.post("/api/lessons", json={"label": "hat"})
    assert other.status_code == 409
    assert "mug is being taught" in other.json()["error"]["problem"]
    for change in (
        served.http.post("/api/undo"),
        served.http.get("/api/state"),
        served.http.post("/api/tray/teach", json={"ids": [], "label": "x"}),
    ):
        assert change.status_code in (400, 409)
    served.http.delete(f"/api/lessons/{lesson}")
    assert served.begin(label="hat")


def test_a_class_is_taught_again_by_its_slot(taught: Running) -> None:
    result = taught.teach("red", slot=0)
    assert (result["label"], result["slot"], result["new"]) == ("red", 0, False)
    result = taught.teach("green", slot=7)
    assert (result["label"], result["slot"], result["new"]) == ("class 7", 7, True)


def test_confusion_names_the_class_that_looks_the_same(served: Running) -> None:
    served.teach("red", label="one")
    result = served.teach("red", label="other")
    assert [each["label"] for each in result["confused"]] == ["one"]
    assert 0.05 <= result["confused"][0]["share"] <= 1


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"label": "a", "slot": 0},
        {"label": ""},
        {"label": "a\nb"},
        {"label": "\x1b[31mred"},
        {"label": "\u200b"},
        {"label": "unknown"},
        {"label": 201 * "a"},
        {"label": 7},
        {"label": None},
        {"slot": 50},
        {"slot": -1},
        {"slot": True},
        {"label": "a", "more": 1},
        [],
    ],
)
def test_names_that_no_class_can_have(served: Running, fields: object) -> None:
    answer = served.http.post("/api/lessons", json=fields)
    assert answer.status_code == 400, answer.text
    assert served.begin(label="mug")  # nothing was begun


def test_markup_in_a_name_is_text(served: Running) -> None:
    name = "<img src=x onerror=alert(1)>\u2028".replace("\u2028", "")
    result = served.teach("red", label=name)
    assert result["label"] == name
    raw = served.http.get("/api/classes")
    assert raw.headers["content-type"] == "application/json"
    assert served.labels() == [name]


def test_too_many_classes(served: Running) -> None:
    for number in range(50):
        served.teach("red", 1, label=f"thing {number}")
    answer = served.http.post("/api/lessons", json={"label": "one more"})
    assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "NoFreeSlot")


def test_an_empty_lesson(served: Running) -> None:
    lesson = served.begin(label="mug")
    answer = served.commit(lesson)
    assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "InputError")
    assert served.labels() == []
    assert served.begin(label="mug")


def test_a_lesson_that_is_not_there(served: Running) -> None:
    for answer in (
        served.http.get("/api/lessons/x"),
        served.commit("x"),
        served.http.delete("/api/lessons/x"),
        served.send("x", frames_of("red", 1)[0]),
    ):
        assert (answer.status_code, answer.json()["error"]["kind"]) == (404, "Missing")


def test_too_many_frames(served: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lrtflite_serve.service.recording.MAX_FRAMES", 2)
    lesson = served.begin(label="mug")
    statuses = [served.send(lesson, frame).status_code for frame in frames_of("red", 3)]
    assert statuses == [200, 200, 413]


def test_stopping_in_the_middle_leaves_no_trace(
    serving: Callable[..., Running], tmp_path: Path
) -> None:
    served = serving()
    served.teach("red")
    folder = Path(served.settings.state)
    before = files_of(folder)
    lesson = served.begin(label="mug")
    served.send(lesson, frames_of("green", 1)[0])
    served.stop()
    assert files_of(folder) == before
    assert serving().labels() == ["red"]


def test_no_frame(served: Running) -> None:
    lesson = served.begin(label="mug")
    path = f"/api/lessons/{lesson}/frames"
    assert served.http.post(path, content=b"", headers=RAW).status_code == 400
    assert served.http.post(path, content=bytes(100), headers=RAW).status_code == 400
    assert served.http.post(path, json={}).status_code == 415
