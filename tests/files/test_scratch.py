"""Folders of killed processes are removed; folders of living ones and other programs stay."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from lrtflite.files.scratch import LOCK, Scratch, scratch_folder, scratch_tempdir

# Script that makes a scratch folder, starts a child that inherits its lock, and waits.
OWNER = """
import subprocess, sys, time
from lrtflite.files.scratch import Scratch
scratch = Scratch()
(scratch.path / "work").mkdir()
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE,
                         pass_fds=(scratch.lock,) if "share" in sys.argv else ())
print(scratch.path, child.pid, flush=True)
time.sleep(60)
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def killed(*words: str) -> tuple[Path, int]:
    """Return the folder of a killed process, and its child process."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, *words], stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        folder, child = owner.stdout.readline().split()
        Scratch().remove()
        assert Path(folder).exists(), "its owner lives"
        owner.kill()
    return Path(folder), int(child)


@pytest.mark.usefixtures("temporary")
def test_the_next_one_removes_what_a_killed_process_left() -> None:
    folder, _ = killed()
    assert (folder / "work").is_dir()
    Scratch().remove()
    assert not folder.exists()


@pytest.mark.usefixtures("temporary")
def test_a_child_that_inherits_the_lock_keeps_the_folder() -> None:
    # The child waits for input, which ends with its parent. A stopped child does not notice.
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, "share"], stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        folder, child = owner.stdout.readline().split()
        os.kill(int(child), signal.SIGSTOP)
        owner.kill()
        owner.wait()
        Scratch().remove()
        assert Path(folder).exists()
        os.kill(int(child), signal.SIGKILL)
        owner.stdout.read()  # until the child, which shares the pipe, is gone
    Scratch().remove()
    assert not Path(folder).exists()


def test_other_folders_stay(temporary: Path) -> None:
    unlocked = temporary / "lrtflite-mine"
    unlocked.mkdir()
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / LOCK).touch()
    (temporary / "lrtflite-link").symlink_to(elsewhere)
    (temporary / "lrtflite-file").touch()
    with scratch_folder() as folder:
        assert folder.parent == temporary
    assert {path.name for path in temporary.iterdir()} == {
        "lrtflite-mine",
        "elsewhere",
        "lrtflite-link",
        "lrtflite-file",
    }
    assert (elsewhere / LOCK).exists()


def test_it_is_removed_after_an_error(temporary: Path) -> None:
    def fail() -> None:
        with scratch_tempdir():
            Path(tempfile.mkdtemp(), "left").touch()
            assert len(list(temporary.iterdir())) == 1
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(temporary.iterdir()) == []
    assert tempfile.gettempdir() == str(temporary)
