"""A service that is killed while it takes another state has one state and the pictures of it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from running_service import ZIP, Running

Serve = Callable[..., Running]
# Takes a state, and is killed at a renaming: the N-th one, just before it.
KILLED = """
import os, signal, sys
from pathlib import Path
from lrtflite import Learner
from lrtflite_serve.service.service import Service
from lrtflite_serve.settings import Settings
from lrtflite_serve.transfers.imports import import_state

bundle, state, archive, last = *map(Path, sys.argv[1:4]), int(sys.argv[4])
service = Service(Learner.open(bundle, state), Settings(bundle, state, keep_pictures=True))
real, seen = Path.rename, 0

def rename(self, target):
    global seen
    if self.parent == state.parent or self.name == "state":
        seen += 1
        if seen == last:
            os.kill(os.getpid(), signal.SIGKILL)
    return real(self, target)

Path.rename = rename
import_state(service, archive)
service.close()
"""


@pytest.fixture
def words(serving: Serve, demo: Path, tmp_path: Path) -> list[str]:
    """Return a command that replaces a state of red and blue by an earlier one of red."""
    first = serving(keep_pictures=True)
    first.teach("red", 2)
    archive = tmp_path / "red.zip"
    archive.write_bytes(first.http.get("/api/state").content)
    first.teach("blue", 3)
    first.stop()
    return [sys.executable, "-c", KILLED, str(demo), str(tmp_path / "state"), str(archive)]


def kept(served: Running) -> list[tuple[str, int]]:
    return [(each["label"], each["kept"]) for each in served.classes()["classes"]]


def test_a_kill_at_each_renaming(words: list[str], serving: Serve, tmp_path: Path) -> None:
    for number in (1, 2, 3):
        done = subprocess.run([*words, str(number)], capture_output=True, text=True, timeout=120)
        assert done.returncode == -signal.SIGKILL, (number, done.stderr)
        again = serving(keep_pictures=True)
        assert kept(again) == [("red", 2), ("blue", 3)], number
        again.stop()
        left = sorted(path.name for path in tmp_path.iterdir())
        assert left == ["red.zip", "state", "state.pictures"], number


def test_without_a_kill_nothing_is_put_back(
    words: list[str], serving: Serve, tmp_path: Path
) -> None:
    done = subprocess.run([*words, "0"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert kept(serving(keep_pictures=True)) == [("red", 0)]
    assert len(list(tmp_path.glob("state-before-*"))) == 1
    assert len(list(tmp_path.glob("state.pictures-before-*/*/*.png"))) == 5


def test_pictures_of_a_run_that_kept_them_do_not_stay_with_another_state(
    serving: Serve, tmp_path: Path
) -> None:
    first = serving(keep_pictures=True)
    first.teach("red", 2)
    first.stop()
    second = serving()
    content = second.http.get("/api/state").content
    answer = second.http.put("/api/state", content=content, headers=ZIP).json()
    assert (tmp_path / answer["old_pictures"]).is_dir()
    second.stop()
    assert serving(keep_pictures=True).classes()["classes"][0]["kept"] == 0


def test_the_terminal_says_what_was_set_aside(serving: Serve, tmp_path: Path) -> None:
    said: list[str] = []
    first = serving(say=said.append)
    first.teach("red", 2)
    content = first.http.get("/api/state").content
    name = first.http.put("/api/state", content=content, headers=ZIP).json()["old_state"]
    first.stop()
    assert said == [f"The old state is in {name}; delete what you do not need"]
    serving(say=said.append)
    assert said[1].startswith("Earlier states are in ")
    assert name in said[1]
