"""A background taught over HTTP: its label, its answers, and what is refused."""

from __future__ import annotations

from running_service import Running, frames_of


def test_a_background_is_taught_by_its_label(served: Running) -> None:
    served.teach("red", label="mug")
    served.teach("blue", label="hat")
    for taught in (1, 2):
        result = served.teach("green", label="nothing here")
        assert (result["label"], result["slot"], result["new"]) == ("nothing here", 2, taught == 1)
    known = served.classes()["classes"]
    assert [(each["label"], each["learned"]) for each in known] == [
        ("mug", True),
        ("hat", True),
        ("nothing here", True),
    ]
    assert [each["background"] for each in known] == [False, False, True]
    assert known[2]["pictures"] == 12
    # In a sentence its label is in quotes, because "learned nothing here" says something else.
    assert served.classes()["last_change"] == 'learned "nothing here"'
    answers = served.predict(frames_of("green", 1, seed=5)[0])["answers"]
    assert answers[0]["label"] == "unknown"
    assert "nothing here" not in [each["label"] for each in answers]
    assert served.predict(frames_of("red", 1, seed=5)[0])["answers"][0]["label"] == "mug"
    # Nobody has to say what the empty place is, so it does not fill the tray.
    for frame in frames_of("green", 12, seed=6):
        settled = served.predict(frame, "?stream=page")["settled"]
    assert settled["kind"] == "unknown"
    assert served.http.get("/api/tray").json() == []
    # It cannot be renamed, and nothing else can have its label.
    renamed = served.http.patch("/api/classes/2", json={"label": "table"})
    assert renamed.status_code == 400
    assert "got the background" in renamed.json()["error"]["problem"]
    assert served.http.patch("/api/classes/0", json={"label": "nothing here"}).status_code == 400
    assert served.labels() == ["mug", "hat", "nothing here"]
    assert served.http.delete("/api/classes/2").status_code == 200
    assert served.labels() == ["mug", "hat"]
    assert served.classes()["last_change"] == 'forgot "nothing here"'
