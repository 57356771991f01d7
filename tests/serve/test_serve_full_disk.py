"""A full disk: a sentence, nothing lost, and the service goes on."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from failing_disk import recording
from running_service import Running, frames_of


def full(number: int, call: str) -> None:
    if call == "write":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_lesson_on_a_full_disk(taught: Running) -> None:
    lesson = taught.begin(label="mug")
    taught.send(lesson, frames_of("green", 1)[0])
    folder, classes = Path(taught.settings.state), taught.classes()
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with recording(full):
        answer = taught.commit(lesson)
    assert answer.status_code == 507
    error = answer.json()["error"]
    assert error["kind"] == "DiskFull"
    assert "No space left" in error["problem"] + str(error["advice"])
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert taught.classes() == classes
    assert taught.commit(lesson).status_code == 507  # the same answer again
    taught.teach("green")
    assert taught.labels() == ["red", "blue", "green"]


@pytest.mark.parametrize("change", ["rename", "undo"])
def test_other_changes_on_a_full_disk(taught: Running, change: str) -> None:
    classes = taught.classes()
    with recording(full):
        if change == "rename":
            answer = taught.http.patch("/api/classes/0", json={"label": "x"})
        else:
            answer = taught.http.post("/api/undo")
    assert answer.status_code == 507
    assert taught.classes() == classes


def test_an_upload_on_a_full_disk(taught: Running) -> None:
    content = taught.http.get("/api/state").content
    around = sorted(os.listdir(Path(taught.settings.state).parent))
    with recording(full):
        answer = taught.http.put(
            "/api/state", content=content, headers={"content-type": "application/zip"}
        )
    assert answer.status_code == 507
    assert sorted(os.listdir(Path(taught.settings.state).parent)) == around
    assert taught.labels() == ["red", "blue"]
