"""Rename, forget and undo, and the pictures that follow them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lrtflite import Learner, read_image
from running_service import SIZE, Running, frames_of

Serve = Callable[..., Running]


def test_rename_forget_and_undo(taught: Running) -> None:
    renamed = taught.http.patch("/api/classes/0", json={"label": "cherry"})
    assert renamed.json()["last_change"] == "renamed red to cherry"
    assert taught.labels() == ["cherry", "blue"]
    assert taught.http.get("/api/classes/0/thumbnail").status_code == 200
    taught.http.post("/api/undo")
    assert taught.labels() == ["red", "blue"]
    assert taught.http.get("/api/classes/0/thumbnail").status_code == 200
    assert taught.http.post("/api/undo").status_code == 409
    taught.http.delete("/api/classes/0")
    assert taught.labels() == ["blue"]
    assert taught.http.get("/api/classes/0/thumbnail").status_code == 404
    undone = taught.http.post("/api/undo").json()
    assert undone == taught.classes()
    assert (taught.labels(), undone["can_undo"]) == (["red", "blue"], False)
    assert taught.predict(frames_of("red", 1)[0])["answers"][0]["label"] == "red"


@pytest.mark.parametrize("label", ["", "blue", "unknown", "a\tb", " blue "])
def test_names_that_cannot_be(taught: Running, label: str) -> None:
    answer = taught.http.patch("/api/classes/0", json={"label": label})
    assert answer.status_code == 400
    assert taught.labels() == ["red", "blue"]


def test_slots_without_a_class(taught: Running) -> None:
    for slot in (7, 50, 99999999999):
        assert taught.http.patch(f"/api/classes/{slot}", json={"label": "x"}).status_code == 404
        assert taught.http.delete(f"/api/classes/{slot}").status_code == 404
    assert taught.http.delete("/api/classes/-1").status_code == 404
    assert taught.http.delete("/api/classes/red").status_code == 404


def test_an_undo_of_a_lesson_takes_back_its_thumbnail(taught: Running) -> None:
    [before, _] = taught.classes()["classes"]
    taught.teach("green", slot=0)
    assert taught.classes()["classes"][0]["thumbnail"] != before["thumbnail"]
    taught.http.post("/api/undo")
    assert taught.classes()["classes"][0] == before


def test_pictures_are_not_kept_unless_asked_for(taught: Running, tmp_path: Path) -> None:
    assert taught.http.get("/api/pictures?slot=0").status_code == 501
    assert not (tmp_path / "state.pictures").exists()


@pytest.fixture
def keeping(serving: Serve) -> Running:
    served = serving(keep_pictures=True)
    served.teach("red", 4)
    served.teach("blue", 3)
    return served


def ids(served: Running, slot: int) -> list[str]:
    return [each["id"] for each in served.http.get(f"/api/pictures?slot={slot}").json()]


def test_kept_pictures_are_the_frames(keeping: Running, tmp_path: Path) -> None:
    assert [each["kept"] for each in keeping.classes()["classes"]] == [4, 3]
    path = tmp_path / "picture.png"
    for picture, frame in zip(ids(keeping, 0), frames_of("red", 4)):
        answer = keeping.http.get(f"/api/pictures/{picture}")
        assert answer.headers["content-type"] == "image/png"
        path.write_bytes(answer.content)
        assert (read_image(path, SIZE) == frame).all()
    names = {item.name for item in (tmp_path / "state").iterdir()}
    assert not [name for name in names if "picture" in name or name.endswith("png")]


def test_undo_takes_pictures_back(keeping: Running) -> None:
    before = ids(keeping, 0)
    keeping.teach("green", 2, slot=0)
    assert len(ids(keeping, 0)) == 6
    keeping.http.post("/api/undo")
    assert ids(keeping, 0) == before
    keeping.http.delete("/api/classes/0")
    assert keeping.http.get("/api/pictures?slot=0").status_code == 404
    keeping.http.post("/api/undo")
    assert ids(keeping, 0) == before


def test_pictures_of_a_forgotten_class_are_gone_after_the_next_change(
    keeping: Running, tmp_path: Path
) -> None:
    keeping.http.delete("/api/classes/0")
    keeping.teach("green", 2)
    assert len(ids(keeping, 0)) == 2  # those of green, in the slot that was free
    assert len(list((tmp_path / "state.pictures").rglob("*.png"))) == 5


def test_pictures_move_and_go(keeping: Running) -> None:
    first, second, *_ = ids(keeping, 0)
    moved = keeping.http.post(f"/api/pictures/{first}/move", json={"slot": 1})
    assert [each["kept"] for each in moved.json()["classes"]] == [3, 4]
    gone = keeping.http.delete(f"/api/pictures/{second}")
    assert [each["kept"] for each in gone.json()["classes"]] == [2, 4]
    assert keeping.http.get(f"/api/pictures/{second}").status_code == 404
    assert keeping.http.post(f"/api/pictures/{first}/move", json={"slot": 9}).status_code == 404


@pytest.mark.parametrize(
    "picture",
    ["../state/checked.json", "slot-00/../../x.png", "slot-00", "x", "%2e%2e/x"],
)
def test_ids_that_no_picture_has(keeping: Running, picture: str) -> None:
    assert keeping.http.get(f"/api/pictures/{picture}").status_code == 404
    assert keeping.http.delete(f"/api/pictures/{picture}").status_code in (404, 405)


def test_a_class_is_learned_again_from_its_pictures(
    keeping: Running, demo: Path, tmp_path: Path
) -> None:
    for picture in ids(keeping, 0)[2:]:
        keeping.http.delete(f"/api/pictures/{picture}")
    result = keeping.http.post("/api/classes/0/relearn")
    assert result.status_code == 200, result.text
    assert (result.json()["label"], result.json()["frames"]) == ("red", 2)
    [red, blue] = keeping.classes()["classes"]
    assert (red["slot"], red["pictures"], red["kept"], blue["kept"]) == (0, 2, 2, 3)
    keeping.stop()
    # The same as a learner that forgot the class and was taught those two frames.
    with Learner.open(demo, tmp_path / "other") as learner:
        learner.learn(frames_of("red", 4), "red")
        learner.learn(frames_of("blue", 3), "blue")
        learner.forget("red")
        learner.learn(frames_of("red", 4)[:2], slot=0)
        expected = learner.predict(frames_of("blue", 1)[0])
    with Learner.open(demo, tmp_path / "state") as learner:
        found = learner.predict(frames_of("blue", 1)[0])
    assert [each.probability for each in found[0]] == pytest.approx(
        [each.probability for each in expected[0]], abs=1e-3
    )


def test_thumbnails_of_kept_pictures_survive_a_restart(keeping: Running, serving: Serve) -> None:
    keeping.stop()
    again = serving(keep_pictures=True)
    assert all(each["thumbnail"] for each in again.classes()["classes"])
