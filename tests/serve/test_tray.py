"""The tray of frames that were unknown or unsure."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from lrtflite.errors import Missing
from lrtflite_serve.service.tray import MAX_FRAMES, Tray
from running_service import SIZE, Running, frames_of


def grey(value: int) -> np.ndarray:
    return np.full((SIZE, SIZE, 3), value, np.uint8)


def test_limits_of_time_number_and_likeness() -> None:
    now = 100.0
    tray = Tray(clock=lambda: now)
    assert tray.offer(grey(0), "unknown", None, 0.1)
    assert not tray.offer(grey(200), "unknown", None, 0.1)  # too soon
    now += 1
    assert not tray.offer(grey(5), "unknown", None, 0.1)  # the same again
    assert tray.offer(grey(200), "unsure", "mug", None)
    assert [(each.kind, each.label) for each in tray.frames] == [
        ("unknown", None),
        ("unsure", "mug"),
    ]
    first, rng = tray.frames[0].id, np.random.default_rng(0)
    for _ in range(MAX_FRAMES + 5):
        now += 1
        cells = np.kron(rng.integers(0, 255, (8, 8)), np.ones((16, 16)))[..., np.newaxis]
        assert tray.offer(np.repeat(cells, 3, axis=2).astype(np.uint8), "unknown", None, 0.0)
    assert len(tray) == MAX_FRAMES
    with pytest.raises(Missing):
        tray.find([first])


def test_no_frame_has_the_id_of_one_before_a_restart() -> None:
    frame = frames_of("red", 1)[0]
    ids = set()
    for _ in range(2):
        tray = Tray()
        assert tray.offer(frame, "unknown", None, None)
        ids |= {each.id for each in tray.frames}
    assert len(ids) == 2


@pytest.fixture
def watched(serving: Callable[..., Running]) -> Running:
    """A server that knows red and answers unknown, and has seen something green."""
    from lrtflite.options import LearnerOptions

    served = serving(options=LearnerOptions(unknown=0.9))
    served.teach("red", 12)
    for frame in frames_of("green", 8):
        served.predict(frame, "?stream=a")
    return served


def test_an_unknown_thing_lands_there_once(watched: Running) -> None:
    [waiting] = watched.http.get("/api/tray").json()
    assert waiting["kind"] == "unknown"
    assert waiting["label"] == "red"
    assert 0 <= waiting["familiarity"] < 0.9
    picture = watched.http.get(f"/api/tray/{waiting['id']}")
    assert picture.headers["content-type"] == "image/jpeg"


def test_frames_without_a_stream_never_do(serving: Callable[..., Running]) -> None:
    from lrtflite.options import LearnerOptions

    served = serving(options=LearnerOptions(unknown=0.9))
    served.teach("red", 12)
    for frame in frames_of("green", 8):
        served.predict(frame)
    assert served.http.get("/api/tray").json() == []


def test_it_becomes_a_class_with_one_call(watched: Running) -> None:
    [waiting] = watched.http.get("/api/tray").json()
    fields = {"ids": [waiting["id"]], "label": "green"}
    result = watched.http.post("/api/tray/teach", json=fields)
    assert result.status_code == 200, result.text
    assert (result.json()["label"], result.json()["new"], result.json()["frames"]) == (
        "green",
        True,
        1,
    )
    assert watched.labels() == ["red", "green"]
    assert watched.http.get("/api/tray").json() == []
    again = watched.http.post("/api/tray/teach", json=fields)
    assert again.status_code == 404


def test_it_is_emptied(watched: Running) -> None:
    [waiting] = watched.http.get("/api/tray").json()
    assert watched.http.delete("/api/tray/999").status_code == 404
    assert watched.http.delete(f"/api/tray/{waiting['id']}").json() == []
    assert watched.http.get(f"/api/tray/{waiting['id']}").status_code == 404
    assert watched.http.delete("/api/tray").json() == []


def test_frames_that_came_later_stay(watched: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    [seen] = watched.http.get("/api/tray").json()
    monkeypatch.setattr("lrtflite_serve.service.tray.PAUSE", 0.0)
    for frame in frames_of("blue", 8):
        watched.predict(frame, "?stream=b")
    before, later = watched.http.get("/api/tray").json()
    assert before == seen
    # A picture that is already gone is not an error.
    for _ in range(2):
        assert watched.http.delete(f"/api/tray?ids={seen['id']},x").json() == [later]
    assert watched.http.delete("/api/tray?ids=").json() == [later]
    assert watched.http.get("/api/tray").json() == [later]


@pytest.mark.parametrize("ids", [None, [], "1", [1], [None]])
def test_ids_of_another_form(watched: Running, ids: object) -> None:
    answer = watched.http.post("/api/tray/teach", json={"ids": ids, "label": "x"})
    assert answer.status_code == 400


def test_it_is_in_ram_only(watched: Running) -> None:
    from pathlib import Path

    folder = Path(watched.settings.state)
    names = [path.name for path in folder.parent.rglob("*") if path.is_file()]
    assert not [name for name in names if name.endswith((".png", ".jpg"))]
