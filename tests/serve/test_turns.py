"""Changes that meet: each happens wholly or is refused, and nobody waits for nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from lrtflite import Learner
from lrtflite.errors import Busy, InputError
from lrtflite_serve.service.album import Album
from lrtflite_serve.service.turns import Turns
from running_service import ZIP, Running, frames_of
from waiting import wait

Serve = Callable[..., Running]


def test_a_change_that_waits_is_refused_once_a_lesson_begins() -> None:
    turns = Turns()
    turns.take("rename")
    heard: list[str] = []

    def lesson() -> None:
        turns.take("teach mug", lesson="mug is being taught")
        heard.append("lesson")

    def change() -> None:
        try:
            with turns.change("undo"):
                heard.append("changed")
        except Busy:
            heard.append("refused")

    threads = []
    for work in (lesson, change, change):  # they wait in this order
        threads.append(threading.Thread(target=work))
        threads[-1].start()
        time.sleep(0.1)  # until it waits; the test holds for any order
    turns.give_back()
    for thread in threads:
        thread.join(10)
    # Whoever is first: after the lesson has begun, nobody waits.
    assert len(heard) == 3
    assert heard.count("lesson") == 1
    assert set(heard[heard.index("lesson") + 1 :]) <= {"refused"}


@pytest.fixture
def keeping(serving: Serve) -> Running:
    served = serving(keep_pictures=True)
    served.teach("red")
    served.teach("blue")
    return served


def picture_of(served: Running, slot: int) -> str:
    found: str = served.http.get(f"/api/pictures?slot={slot}").json()[0]["id"]
    return found


def test_pictures_stay_while_a_lesson_goes_on(keeping: Running) -> None:
    picture = picture_of(keeping, 0)
    lesson = keeping.begin(label="green")
    assert keeping.http.delete(f"/api/pictures/{picture}").status_code == 409
    moved = keeping.http.post(f"/api/pictures/{picture}/move", json={"slot": 1})
    assert moved.status_code == 409
    keeping.http.delete(f"/api/lessons/{lesson}")
    assert keeping.http.delete(f"/api/pictures/{picture}").status_code == 200


def test_a_lesson_whose_pictures_cannot_be_kept_is_learned(
    keeping: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: Album, *given: Any, **options: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Album, "add", fails)
    result = keeping.teach("green")
    assert any("not all pictures were kept" in note for note in result["notes"])
    assert keeping.labels() == ["red", "blue", "green"]


def test_one_upload_at_a_time(taught: Running) -> None:
    content = taught.http.get("/api/state").content
    begun, go_on = threading.Event(), threading.Event()

    def parts() -> Iterator[bytes]:
        yield content[:100]
        begun.set()
        assert go_on.wait(30)
        yield content[100:]

    with ThreadPoolExecutor(1) as pool, httpx.Client(timeout=60) as other:
        address = f"{taught.started.address}api/state"
        first = pool.submit(other.put, address, content=parts(), headers=ZIP)
        assert begun.wait(30)
        wait(lambda: list(Path(taught.settings.state).parent.glob(".upload-*")), "the upload")
        second = taught.http.put("/api/state", content=content, headers=ZIP)
        assert (second.status_code, second.json()["error"]["kind"]) == (409, "Busy")
        go_on.set()
        assert first.result(60).status_code == 200
    assert taught.http.put("/api/state", content=content, headers=ZIP).status_code == 200


def test_one_model_at_a_time(taught: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def export(words: list[str], service: object) -> str:
        begun.set()
        assert go_on.wait(30)
        return "Error: no"

    monkeypatch.setattr("lrtflite_serve.transfers.exports.run_child", export)
    monkeypatch.setattr("lrtflite_serve.transfers.exports.find_spec", lambda name: 1)
    with ThreadPoolExecutor(1) as pool, httpx.Client(timeout=60) as other:
        first = pool.submit(other.get, f"{taught.started.address}api/model")
        assert begun.wait(30)
        # A thread for each would leave none for lessons.
        statuses = [taught.http.get("/api/model", timeout=10).status_code for _ in range(8)]
        assert statuses == [409] * 8
        taught.teach("green")
        go_on.set()
        assert first.result(60).status_code == 501


def test_the_last_class_may_go_while_a_frame_is_answered(
    served: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.teach("red")
    frame = frames_of("red", 1)[0]

    def forgotten(self: Learner, *given: Any, **options: Any) -> Any:
        monkeypatch.setattr(Learner, "learned", property(lambda self: ()))
        raise InputError("This learner has learned nothing yet", "teach it a label first")

    monkeypatch.setattr(Learner, "predict", forgotten)
    assert served.predict(frame)["nothing_learned"] is True


def test_changes_at_once_leave_a_state_that_opens(serving: Serve, demo: Path) -> None:
    served = serving(keep_pictures=True)
    served.teach("red", 2)
    content = served.http.get("/api/state").content
    statuses: set[int] = set()
    rng = np.random.default_rng(0)

    def work(seed: int) -> None:
        mine = np.random.default_rng(seed)
        with httpx.Client(base_url=served.started.address, timeout=60) as http:
            one = Running(http, served.started, served.settings, served.stopping, served.thread)
            for _ in range(8):
                statuses.add(_change(one, int(mine.integers(7)), content))

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(work, rng.integers(1 << 30, size=5)))
    assert statuses <= {200, 404, 409, 501}, statuses  # 501: there are no pictures
    labels = served.labels()
    served.teach("green", 2)
    served.stop()
    with Learner.open(demo, served.settings.state) as learner:
        assert {each for each in learner.labels if each} == {*labels, "green"}


def _change(served: Running, kind: int, content: bytes) -> int:
    """Make one change of a kind, whatever else goes on; return the worst status."""
    http = served.http
    if kind == 0:
        return http.post("/api/undo").status_code
    if kind == 1:
        return http.delete("/api/classes/0").status_code
    if kind == 2:
        return http.patch("/api/classes/0", json={"label": "cherry"}).status_code
    if kind == 3:
        return http.put("/api/state", content=content, headers=ZIP).status_code
    if kind == 4:
        return http.post("/api/classes/0/relearn").status_code
    begun = http.post("/api/lessons", json={"label": f"thing {kind}"})
    if begun.status_code != 201:
        return begun.status_code
    lesson = begun.json()["id"]
    sent = served.send(lesson, frames_of("blue", 1)[0]).status_code
    ended = http.delete(f"/api/lessons/{lesson}") if kind == 5 else served.commit(lesson)
    return max(sent, ended.status_code)
