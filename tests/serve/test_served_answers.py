"""Facts, answers and pictures in; what a client learns about the service."""

from __future__ import annotations

import io
from collections.abc import Callable

import httpx
import numpy as np
import pytest
from PIL import Image

from lrtflite import Learner, fit_frame
from running_service import SIZE, Running, frames_of


def test_facts(served: Running) -> None:
    facts = served.http.get("/api").json()
    assert facts["name"] == "lrtflite"
    assert facts["bundle"]["input_size"] == SIZE
    assert facts["teach"] == {"seconds": 20.0, "fps": 5.0, "max_frames": 1000}
    assert (facts["camera"], facts["keep_pictures"]) == (None, False)
    assert (facts["token_required"], facts["secure"]) == (False, True)


def test_nothing_is_known_at_first(served: Running) -> None:
    answer = served.predict(frames_of("red", 1)[0], "?stream=a")
    assert answer["answers"] == []
    assert answer["nothing_learned"] is True
    assert served.classes() == {
        "sessions": 0,
        "slots": 50,
        "free": 50,
        "can_undo": False,
        "last_change": None,
        "classes": [],
    }


def test_answers_are_those_of_the_learner(taught: Running, demo: object) -> None:
    [frame] = frames_of("red", 1, seed=9)
    answer = taught.predict(frame, "?top=1")
    with Learner.open(taught.settings.bundle, taught.settings.state, read_only=True) as learner:
        [[guess]] = learner.predict(frame, top=1)
    [first] = answer["answers"]
    assert (first["label"], first["slot"]) == (guess.label, guess.slot) == ("red", 0)
    assert first["probability"] == pytest.approx(guess.probability, abs=1e-4)
    assert answer["settled"] is None  # no stream


def test_a_stream_settles_and_others_are_apart(taught: Running) -> None:
    red, blue = frames_of("red", 5, seed=3), frames_of("blue", 5, seed=3)
    for one, other in zip(red, blue):
        first, second = taught.predict(one, "?stream=a"), taught.predict(other, "?stream=b")
    assert (first["settled"]["kind"], first["settled"]["label"]) == ("answer", "red")
    assert (second["settled"]["kind"], second["settled"]["label"]) == ("answer", "blue")
    assert first["settled"]["frames"] == 5


@pytest.mark.parametrize("kind", ["png", "bmp", "webp", "jpeg"])
def test_pictures_are_fitted_as_read_image_does(taught: Running, kind: str) -> None:
    rng = np.random.default_rng(1)
    wide = rng.integers(0, 255, (300, 400, 3), np.uint8)
    wide[:, 100:300] = (220, 30, 30)
    out = io.BytesIO()
    options = {"lossless": True} if kind == "webp" else {}
    Image.fromarray(wide).save(out, kind, **options)
    headers = {"content-type": f"image/{kind}"}
    answer = taught.http.post("/api/predict", content=out.getvalue(), headers=headers)
    assert answer.status_code == 200
    decoded = np.asarray(Image.open(io.BytesIO(out.getvalue())).convert("RGB"))
    expected = taught.predict(fit_frame(decoded, SIZE))
    assert answer.json()["answers"] == expected["answers"]


def test_answers_go_on_while_a_lesson_is_recorded(taught: Running) -> None:
    lesson = taught.begin(label="green")
    for number, frame in enumerate(frames_of("green", 3)):
        taught.send(lesson, frame, number)
        assert taught.predict(frames_of("red", 1)[0])["answers"][0]["label"] == "red"
    assert taught.commit(lesson).status_code == 200


@pytest.mark.parametrize("query", ["top=-1", "top=x", "top=1e3", "top=99999", "stream=" + 65 * "a"])
def test_wrong_queries(taught: Running, query: str) -> None:
    answer = taught.http.post(
        f"/api/predict?{query}",
        content=frames_of("red", 1)[0].tobytes(),
        headers={"content-type": "application/octet-stream"},
    )
    assert answer.status_code == 400
    assert answer.json()["error"]["kind"] == "InputError"


def test_unknown_paths_and_methods(served: Running) -> None:
    assert served.http.get("/api/nothing").status_code == 404
    answer = served.http.put("/api/classes")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
    assert served.http.request("OPTIONS", "/api/classes").status_code == 405
    assert served.http.get("/api/classes/7/thumbnail").status_code == 404


def test_diagnosis(taught: Running) -> None:
    found = taught.http.get("/api/diagnosis")
    assert found.status_code == 200
    assert isinstance(found.json(), dict)


def test_the_page_has_fixed_types_of_files(
    serving: Callable[..., Running], tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path)) / "page"
    (folder / "ui").mkdir(parents=True)
    (folder / "index.html").write_text("<p>hello")
    (folder / "ui" / "app.js").write_text("1")
    (folder / "secret.txt").write_text("no")
    (folder / ".hidden.js").write_text("no")
    (folder.parent / "outside.js").write_text("no")
    (folder / "link.js").symlink_to(folder.parent / "outside.js")
    monkeypatch.setattr("lrtflite_serve.http.application.page_folder", lambda: folder)
    served = serving()
    page = served.http.get("/")
    assert (page.status_code, page.text) == (200, "<p>hello")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    script = served.http.get("/ui/app.js")
    assert script.headers["content-type"].startswith("text/javascript")
    again = served.http.get("/ui/app.js", headers={"if-none-match": script.headers["etag"]})
    assert again.status_code == 304
    for path in ("/secret.txt", "/.hidden.js", "/link.js", "/ui/..%2f..%2foutside.js", "/ui/"):
        assert served.http.get(path).status_code == 404, path
    assert served.http.post("/", content=b"").status_code == 405


def test_every_answer_has_the_headers(served: Running) -> None:
    for path in ("/", "/api", "/api/nothing"):
        headers: httpx.Headers = served.http.get(path).headers
        assert "'unsafe-inline'" not in headers["content-security-policy"]
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["permissions-policy"] == "camera=(self)"
        assert not any(name.startswith("access-control") for name in headers)
