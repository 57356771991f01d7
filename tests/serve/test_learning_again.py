"""A class is learned again from its kept pictures: wholly, or not at all."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lrtflite import Learner
from running_service import Running, frames_of

Serve = Callable[..., Running]
# Learns class 0 again, and is killed while it decodes a picture, or as it adopts the commit.
KILLED = """
import os, signal, sys
from pathlib import Path
from lrtflite import Learner
from lrtflite.state.committed import CommittedState
from lrtflite_serve.service import changes
from lrtflite_serve.service.service import Service
from lrtflite_serve.settings import Settings

bundle, state, where = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
service = Service(Learner.open(bundle, state), Settings(bundle, state, keep_pictures=True))
real, seen = changes.frame_of_picture, 0

def kill(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def picture(*given):
    global seen
    seen += 1
    return kill() if seen == 3 else real(*given)

if where == "picture":
    changes.frame_of_picture = picture
else:
    CommittedState._finish = kill
changes.relearn(service, 0)
"""


@pytest.fixture
def keeping(serving: Serve) -> Running:
    served = serving(keep_pictures=True)
    served.teach("red", 6)
    served.teach("blue", 6)
    return served


@pytest.mark.parametrize(("where", "taught"), [("picture", 6), ("committed", 4)])
def test_a_kill_never_leaves_a_class_missing(
    keeping: Running, demo: Path, where: str, taught: int
) -> None:
    for picture in keeping.http.get("/api/pictures?slot=0").json()[:2]:
        keeping.http.delete(f"/api/pictures/{picture['id']}")
    keeping.stop()
    words = [sys.executable, "-c", KILLED, str(demo), str(keeping.settings.state), where]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with Learner.open(demo, keeping.settings.state) as learner:
        assert learner.learned == ("red", "blue")
        assert learner.patterns == {"red": taught, "blue": 6}
        assert learner.predict(frames_of("red", 1)[0])[0][0].label == "red"


def test_it_holds_few_frames(keeping: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    real, given = Learner.relearn, 0

    def relearn(self: Learner, frames: Any, *rest: Any, **options: Any) -> Any:
        nonlocal given
        assert isinstance(frames, Iterator)
        given += 1
        return real(self, frames, *rest, **options)

    monkeypatch.setattr(Learner, "relearn", relearn)
    answer = keeping.http.post("/api/classes/0/relearn")
    assert (answer.status_code, answer.json()["frames"], given) == (200, 6, 1)
    assert keeping.labels() == ["red", "blue"]


def test_a_damaged_picture_changes_nothing(keeping: Running) -> None:
    folder = Path(f"{keeping.settings.state}.pictures")
    before = keeping.classes()
    damaged = sorted(folder.rglob("*.png"))[3]
    damaged.write_bytes(damaged.read_bytes()[:100])
    answer = keeping.http.post("/api/classes/0/relearn")
    assert answer.status_code == 400
    assert keeping.classes() == before
    assert keeping.predict(frames_of("red", 1)[0])["answers"][0]["label"] == "red"


def test_undo_takes_it_back(keeping: Running) -> None:
    before = keeping.classes()["classes"]
    [first, *_] = keeping.http.get("/api/pictures?slot=0").json()
    keeping.http.delete(f"/api/pictures/{first['id']}")
    assert keeping.http.post("/api/classes/0/relearn").json()["frames"] == 5
    assert keeping.http.post("/api/undo").status_code == 200
    red, blue = keeping.classes()["classes"]
    # The picture that was deleted stays deleted.
    assert (red, blue) == ({**before[0], "kept": 5}, before[1])
