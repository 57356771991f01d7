"""The state folder: each state is on disk whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lrtflite import state_file, whole_file
from lrtflite.checkpoint import Checkpoint, newest_state
from lrtflite.errors import StateError
from lrtflite.state_file import State


def state(number: int) -> State:
    return State({"head/cw": np.full((3, 2), number, np.float32)}, {"sessions": number})


def value(found: State | None) -> int:
    assert found is not None
    assert found.meta["sessions"] == found.arrays["head/cw"][0, 0]
    return int(found.meta["sessions"])


@pytest.fixture
def checkpoint(tmp_path: Path) -> Iterator[Checkpoint]:
    found = Checkpoint(tmp_path)
    yield found
    found.close()


def test_commit_then_load(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "new" / "state")
    assert checkpoint.load() is None
    for number in range(4):
        checkpoint.commit(state(number))
        assert value(checkpoint.load()) == number
    assert value(newest_state(checkpoint.folder)) == 3
    # The newest generation, and the previous one for undo.
    assert len(list(checkpoint.folder.glob("state-*"))) == 2
    checkpoint.close()


def test_step_back_once(checkpoint: Checkpoint) -> None:
    for number in range(3):
        checkpoint.commit(state(number))
    assert value(checkpoint.previous()) == 1
    # Reading it changes nothing.
    assert value(checkpoint.load()) == 2
    checkpoint.drop_newest()
    assert value(checkpoint.load()) == 1
    with pytest.raises(StateError, match="Nothing to undo"):
        checkpoint.previous()
    checkpoint.commit(state(5))
    assert value(checkpoint.previous()) == 1


def test_what_cannot_be_read_now_is_not_damaged(
    checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint.commit(state(1))
    checkpoint.commit(state(2))

    def busy(*_: Any, **__: Any) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patch:
        patch.setattr(np, "load", busy)
        with pytest.raises(StateError, match="Too many open files"):
            checkpoint.load()
    assert not list(tmp_path.glob("*.damaged"))
    assert value(checkpoint.load()) == 2


@pytest.mark.parametrize("step", ["write", "fsync", "replace", "flush"])
def test_a_failing_disk_leaves_the_old_state(
    checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    checkpoint.commit(state(1))

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    target = {
        "write": (np.lib.format, "write_array"),
        "fsync": (os, "fsync"),
        "replace": (Path, "replace"),
        "flush": (whole_file, "flush_folder"),
    }[step]
    with monkeypatch.context() as patch:
        patch.setattr(*target, full)
        with pytest.raises(StateError, match="No space left on device"):
            checkpoint.commit(state(2))
    assert value(checkpoint.load()) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"lock", "state-00000000.npz"}
    checkpoint.commit(state(3))
    assert value(checkpoint.load()) == 3


@pytest.mark.parametrize("name", ["state-00000001.tmp", ".state-00000001.0a1b2c3d.part.npz"])
def test_a_power_cut_while_writing_leaves_the_old_state(tmp_path: Path, name: str) -> None:
    checkpoint = Checkpoint(tmp_path)
    checkpoint.commit(state(1))
    checkpoint.close()
    # A power cut leaves a temporary file with half of the next generation.
    whole = (tmp_path / "state-00000000.npz").read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    reopened = Checkpoint(tmp_path)
    assert value(reopened.load()) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"lock", "state-00000000.npz"}
    reopened.close()


def test_a_process_that_is_killed_while_writing_leaves_the_old_state(tmp_path: Path) -> None:
    script = (
        "import os, sys, signal, numpy as np\n"
        "from lrtflite.checkpoint import Checkpoint\n"
        "from lrtflite.state_file import State\n"
        "checkpoint = Checkpoint(sys.argv[1])\n"
        "checkpoint.commit(State({'head/cw': np.ones((3, 2), np.float32)}, {'sessions': 1}))\n"
        "os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)\n"
        "checkpoint.commit(State({'head/cw': np.zeros((3, 2), np.float32)}, {'sessions': 2}))\n"
    )
    done = subprocess.run([sys.executable, "-c", script, tmp_path], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 3  # the lock, one generation and half of another
    reopened = Checkpoint(tmp_path)
    assert value(reopened.load()) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"lock", "state-00000000.npz"}
    reopened.close()


def test_a_deleted_folder_is_not_made_again(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "state")
    checkpoint.commit(state(1))
    shutil.rmtree(tmp_path / "state")
    with pytest.raises(StateError, match=r"Cannot save to .*No such file"):
        checkpoint.commit(state(2))
    assert list(tmp_path.iterdir()) == []
    checkpoint.close()


@pytest.mark.parametrize("damage", ["truncated", "flipped"])
def test_a_damaged_generation_is_set_aside(
    checkpoint: Checkpoint, tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoint.commit(state(1))
    checkpoint.commit(state(2))
    newest = tmp_path / "state-00000001.npz"
    content = bytearray(newest.read_bytes())
    if damage == "truncated":
        del content[len(content) // 2 :]
    else:
        content[content.index(np.float32(2).tobytes())] ^= 0xFF
    newest.write_bytes(content)
    assert value(checkpoint.load()) == 1
    assert "damaged" in caplog.text
    assert newest.with_suffix(".damaged").exists()
    # Commits go on from the generation that is left.
    checkpoint.commit(state(3))
    assert value(checkpoint.load()) == 3


def test_only_damaged_generations_is_an_error(checkpoint: Checkpoint, tmp_path: Path) -> None:
    (tmp_path / "state-00000000.npz").write_bytes(b"PK\x03\x04 not a zip")
    with pytest.raises(StateError, match="damaged"):
        checkpoint.load()


def test_two_learners_cannot_share_a_state(tmp_path: Path) -> None:
    first = Checkpoint(tmp_path)
    with pytest.raises(StateError, match="in use"):
        Checkpoint(tmp_path)
    first.close()
    Checkpoint(tmp_path).close()


def test_unusable_paths(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(StateError, match="Cannot use"):
        Checkpoint(file / "state")
    with pytest.raises(StateError, match="no state"):
        newest_state(tmp_path)


@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_an_array_can_be_read_later_into_its_place(
    checkpoint: Checkpoint, dtype: type[np.number]
) -> None:
    values = np.arange(5 * 4 * 3).reshape(5, 4, 3).astype(dtype)
    checkpoint.commit(State({"memory/codes": values, "b": np.ones(2)}, {}))
    found = checkpoint.load(later=("memory/codes",))
    assert found is not None
    assert set(found.arrays) == {"b"}
    room = np.zeros((9, 4, 3), dtype)
    found.read_into("memory/codes", room[:5])
    np.testing.assert_array_equal(room[:5], values)
    assert not room[5:].any()
    for other in (np.empty((4, 4, 3), dtype), np.empty((5, 4, 3), np.int16)):
        with pytest.raises(StateError, match="damaged"):
            found.read_into("memory/codes", other)


def test_what_is_left_for_later_is_checked_at_once(checkpoint: Checkpoint, tmp_path: Path) -> None:
    for number in (1, 2):
        checkpoint.commit(State({"memory/codes": np.full(1000, number, np.float32)}, {}))
    newest = tmp_path / "state-00000001.npz"
    content = bytearray(newest.read_bytes())
    content[content.index(np.float32(2).tobytes() * 9)] ^= 0xFF
    newest.write_bytes(content)
    found = checkpoint.load(later=("memory/codes",))
    assert found is not None
    out = np.empty(1000, np.float32)
    found.read_into("memory/codes", out)
    np.testing.assert_array_equal(out, 1)


def test_a_large_memory_is_never_in_ram_twice(checkpoint: Checkpoint) -> None:
    values = np.zeros((100, 1 << 18), np.float32)  # 100 latents of 1 MB
    room = np.empty_like(values)
    tracemalloc.start()
    try:
        checkpoint.commit(State({"memory/codes": values}, {}))
        found = checkpoint.load(later=("memory/codes",))
        assert found is not None
        found.read_into("memory/codes", room)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < values.nbytes / 2


def test_another_format(checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(state_file, "STATE_FORMAT", 99)
        checkpoint.commit(state(1))
        checkpoint.commit(state(2))
    with pytest.raises(StateError, match="format 99"):
        checkpoint.load()
    # The generations stay for the version that wrote them.
    assert len(list(checkpoint.folder.glob("state-*.npz"))) == 2
