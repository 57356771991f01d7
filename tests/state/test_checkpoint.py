"""The state folder: each state is on disk whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lrtflite.errors import StateError, StateInPlace
from lrtflite.files import atomic as whole_file
from lrtflite.files import reading as regular_file
from lrtflite.replay.memory import Content
from lrtflite.state import checkpoint as checkpoint_module
from lrtflite.state.checkpoint import Checkpoint
from lrtflite.state.folder import read_state
from lrtflite.state.reading import State, read_opened
from states import contents, patterns, put, state, value


@pytest.fixture(autouse=True)
def tensors_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give tensors a file of their own, as those of a trunk have."""
    monkeypatch.setattr("lrtflite.state.writing.MAX_INLINE", 0)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Iterator[Checkpoint]:
    found = Checkpoint(tmp_path)
    yield found
    found.close()


def names(folder: Path, kind: str = "") -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith(kind))


def test_commit_then_load(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "new" / "state")
    assert checkpoint.load() is None
    for number in range(4):
        checkpoint.commit(state(number))
        assert value(checkpoint.load()) == number
    assert value(read_state(checkpoint.folder)) == 3
    checkpoint.close()


def test_a_new_folder_is_flushed_into_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[Path] = []
    monkeypatch.setattr(checkpoint_module, "flush_folder", flushed.append)
    Checkpoint(tmp_path / "a" / "b").close()
    assert flushed[:2] == [tmp_path, tmp_path / "a"]
    assert not (tmp_path / "a").exists()  # nothing was committed
    (tmp_path / "a" / "b").mkdir(parents=True)
    # A folder that somebody else made is flushed too, until it has a generation.
    flushed.clear()
    Checkpoint(tmp_path / "a" / "b").close()
    assert flushed == [tmp_path / "a"]
    flushed.clear()
    put(tmp_path / "a" / "b", 1)
    del flushed[:]
    Checkpoint(tmp_path / "a" / "b").close()
    assert flushed == []


def test_a_commit_writes_what_changed(checkpoint: Checkpoint, tmp_path: Path) -> None:
    """The trunk, 64 floats, is in two files by then; only two new rows are added."""
    checkpoint.load()
    checkpoint.commit(state(0))
    content = checkpoint.commit(state(1, rows=40))
    before = contents(tmp_path)
    later = content.with_rows([np.array([2, k, 0], np.float32) for k in range(2)], np.arange(2))
    checkpoint.commit(state(2, memory=later))
    after = contents(tmp_path)
    gone = {"state-00000000.safetensors", "rows-00000000.safetensors"}
    assert set(before) - set(after) == gone
    kept = {name: content for name, content in before.items() if name in after}
    assert kept.items() <= after.items(), "nothing that is named was changed"
    new = {name: len(content) for name, content in after.items() if name not in before}
    assert set(new) == {f"{kind}-00000002.safetensors" for kind in ("state", "tensors", "rows")}
    found = read_state(tmp_path)
    np.testing.assert_array_equal(found.memory.rows.all(), later.rows.all())
    tensors = after["tensors-00000002.safetensors"]
    assert b"head/cw" in tensors
    assert b"head/trunk" not in tensors
    # Nothing changed but a name: rows are not written, tensors once more in two commits.
    for number in (3, 4):
        checkpoint.commit(read_state(tmp_path))
        assert f"rows-{number:08d}.safetensors" not in contents(tmp_path)
    tensors = contents(tmp_path)["tensors-00000003.safetensors"]
    assert b"head/trunk" not in tensors
    assert "tensors-00000004.safetensors" not in contents(tmp_path)


def test_dead_rows_are_dropped_once_they_outweigh_live_ones(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    checkpoint.load()
    content = patterns(0, 30)
    most = 0
    for number in range(20):
        rows = [np.array([number, k, 0], np.float32) for k in range(10)]
        content = content.with_rows(
            rows, np.random.default_rng(number).choice(30, 10, replace=False)
        )
        expected = content.rows.all()
        content = checkpoint.commit(state(number, memory=content))
        np.testing.assert_array_equal(content.rows.all(), expected)
        most = max(most, sum(file.count for file in content.rows.files))
    assert most <= 60 + 10
    found = read_state(tmp_path)
    np.testing.assert_array_equal(found.memory.rows.all(), expected)


@pytest.mark.slow
def test_many_small_sessions_share_files(checkpoint: Checkpoint, tmp_path: Path) -> None:
    checkpoint.load()
    content = patterns(0, 0)
    for number in range(80):
        content = content.with_rows([np.full(3, number, np.float32)], np.array([number]))
        content = checkpoint.commit(state(number, memory=content))
    assert len(names(tmp_path, "rows")) <= 34
    np.testing.assert_array_equal(read_state(tmp_path).memory.rows.all()[:, 0], np.arange(80))


def test_step_back_once(checkpoint: Checkpoint, tmp_path: Path) -> None:
    checkpoint.load()
    for number in range(3):
        checkpoint.commit(state(number))
    previous = checkpoint.previous()
    before = read_state(tmp_path)
    assert value(before) == 2
    checkpoint.undo(previous, read_opened(previous))
    assert value(checkpoint.load()) == 1
    with pytest.raises(StateError, match="Nothing to undo"):
        checkpoint.previous()
    # The state that undo returned to is there twice, so that one damaged file does no harm.
    newest = max(names(tmp_path, "state"))
    (tmp_path / newest).write_bytes(b"")
    assert value(read_state(tmp_path)) == 1
    checkpoint.load()
    checkpoint.commit(state(5))
    assert value(read_opened(checkpoint.previous())) == 1


def test_generations_count_past_eight_digits(tmp_path: Path) -> None:
    put(tmp_path, 1)
    old, new = (tmp_path / f"state-{n}.safetensors" for n in ("00000000", "99999999"))
    old.rename(new)
    put(tmp_path, 2)
    assert (tmp_path / "state-100000000.safetensors").exists()
    assert value(read_state(tmp_path)) == 2
    put(tmp_path, 3)
    assert value(read_state(tmp_path)) == 3


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOMEM, errno.EMFILE])
@pytest.mark.parametrize("call", ["open", "preadv"])
def test_what_cannot_be_read_now_is_not_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, call: str
) -> None:
    put(tmp_path, 1, 2)
    before = contents(tmp_path)
    monkeypatch.setattr(regular_file, "PAUSES", (0, 0))
    checkpoint, real = Checkpoint(tmp_path), getattr(os, call)
    failures = 0

    def fails(*args: Any) -> Any:
        nonlocal failures
        failures -= 1
        if failures >= 0:
            raise OSError(number, os.strerror(number))
        return real(*args)

    monkeypatch.setattr(os, call, fails)
    failures = 10**6
    with pytest.raises(StateError, match=f"{os.strerror(number)}; nothing was changed"):
        checkpoint.load()
    failures = 2  # it passes
    assert value(checkpoint.load()) == 2
    checkpoint.close()
    assert contents(tmp_path) == before


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_a_failing_disk_leaves_the_old_state(
    checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    checkpoint.load()
    checkpoint.commit(state(1))
    before = contents(tmp_path)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, step, full)
        with pytest.raises(StateError, match=r"the state before is intact: No space left on dev"):
            checkpoint.commit(state(2))
    assert contents(tmp_path) == before
    checkpoint.commit(state(3))
    assert value(checkpoint.load()) == 3


@pytest.mark.parametrize(
    ("failures", "known"),
    [(1, "the state before is intact"), (2, "in use, but a power cut may bring the new one back")],
)
def test_a_folder_that_cannot_be_flushed_leaves_the_old_state(
    checkpoint: Checkpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failures: int,
    known: str,
) -> None:
    """The new generation is removed, and flushed out of the folder if that can be done."""
    checkpoint.load()
    checkpoint.commit(state(1))
    before, real = contents(tmp_path), whole_file.flush_folder
    flushed: list[Path] = []

    def flush(folder: Path) -> None:
        flushed.append(folder)
        if len(flushed) <= failures:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(folder)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_module, "flush_folder", flush)
        with pytest.raises(StateError, match=f"{known}: Input/output error; check the disk"):
            checkpoint.commit(state(2))
    assert len(flushed) == 2
    assert contents(tmp_path) == before
    checkpoint.commit(state(3))
    assert value(checkpoint.load()) == 3


def test_a_disk_that_turns_read_only_after_the_rename_says_what_is_known(
    checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint.load()
    checkpoint.commit(state(1))
    real, flushes = whole_file.flush_folder, []

    def read_only(*_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    def flush(folder: Path) -> None:
        flushes.append(folder)
        if len(flushes) == 1:  # after the generation was renamed
            monkeypatch.setattr(os, "unlink", read_only)
            read_only()
        real(folder)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_module, "flush_folder", flush)
        with pytest.raises(StateInPlace, match="the new state is in place, but a power cut may"):
            checkpoint.commit(state(2))
        monkeypatch.undo()
    # The next commit goes on from it, and so does a restart.
    checkpoint.commit(state(4))
    assert value(read_opened(checkpoint.previous())) == 2
    assert value(checkpoint.load()) == 4
    checkpoint.commit(state(3))
    assert value(read_state(tmp_path)) == 3


def test_leftovers_of_a_power_cut_go_and_other_files_stay(tmp_path: Path) -> None:
    put(tmp_path, 1)
    for name in (".state-00000001.part", "rows-00000001.safetensors"):
        (tmp_path / name).write_bytes(b"half")
    for name in ("notes.tmp", ".notes.part", "state-00000001.tmp"):
        (tmp_path / name).write_text("somebody's")
    put(tmp_path, 2)
    assert {"notes.tmp", ".notes.part", "state-00000001.tmp"} < set(names(tmp_path))
    assert value(read_state(tmp_path)) == 2
    assert "half" not in str(contents(tmp_path).values())


def test_a_process_that_is_killed_while_writing_leaves_the_old_state(tmp_path: Path) -> None:
    script = (
        "import os, sys, signal\n"
        "sys.path.insert(0, sys.argv[2])\n"
        "from states import Checkpoint, state\n"
        "checkpoint = Checkpoint(sys.argv[1])\n"
        "checkpoint.commit(state(1))\n"
        "os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)\n"
        "checkpoint.commit(state(2))\n"
    )
    helpers = Path(__file__).parents[1] / "support"
    command = [sys.executable, "-c", script, str(tmp_path), str(helpers)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert value(read_state(tmp_path)) == 1
    put(tmp_path, 3)
    assert value(read_state(tmp_path)) == 3


def test_a_deleted_or_exchanged_folder_is_not_written(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    checkpoint = Checkpoint(folder)
    checkpoint.commit(state(1))
    shutil.rmtree(folder)
    with pytest.raises(StateError, match=r"Cannot save to .*No such file"):
        checkpoint.commit(state(2))
    assert list(tmp_path.iterdir()) == []
    put(folder, 7)
    with pytest.raises(StateError, match="got another one in its place"):
        checkpoint.commit(state(2))
    assert value(read_state(folder)) == 7
    checkpoint.close()


def test_a_large_memory_is_never_in_ram(checkpoint: Checkpoint) -> None:
    row = np.zeros((1 << 18,), np.float32)  # a latent of 1 MB
    empty = Content.empty(row.shape, row.dtype)
    memory = empty.with_rows([row] * 100, np.arange(100))
    tracemalloc.start()
    try:
        checkpoint.commit(state(1, memory=memory))
        found = checkpoint.load()
        assert found is not None
        assert len(found.memory) == 100
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8e6


def test_a_commit_after_reopening_takes_the_newest_tensors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small tensor is first in a shared file with the trunk, then in the generation itself."""
    monkeypatch.setattr("lrtflite.state.writing.MAX_INLINE", 100)
    put(tmp_path, 1, 2, 3, 4)
    with contextlib.closing(Checkpoint(tmp_path)) as checkpoint:
        found = checkpoint.load()
        assert found is not None
        renamed = replace(found.meta, labels=("mug", None))
        checkpoint.commit(State(found.arrays, found.memory, renamed))
    found = read_state(tmp_path)
    assert found.meta.labels == ("mug", None)
    assert value(found) == 4


def test_another_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("lrtflite.state.record.STATE_FORMAT", 99)
        put(tmp_path, 1)
    before = contents(tmp_path)
    with pytest.raises(StateError, match="format 99"):
        Checkpoint(tmp_path).load()
    # The generations stay for the version that wrote them.
    assert contents(tmp_path) == before


def test_states_before_format_5_are_refused_by_number(tmp_path: Path) -> None:
    (tmp_path / "state-00000004.npz").write_bytes(b"PK")
    for read_only in (True, False):
        with pytest.raises(StateError, match="format 5 or 6, got format 4 or earlier"):
            Checkpoint(tmp_path, read_only=read_only)
