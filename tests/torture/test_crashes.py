"""Kills, power cuts, failing disks and flipped bits: a state is the one before or the one after.

`make torture` runs the same tests with LRTFLITE_TORTURE, the number of times as many cases.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from failing_disk import FAILS, Files, power_cuts, recording
from lrtflite.errors import StateError
from lrtflite.files import reading as regular_file
from lrtflite.state.checkpoint import Checkpoint
from lrtflite.state.folder import read_state
from lrtflite.state.reading import State
from states import contents, patterns, put, state, value, write_all

TIMES = int(os.environ.get("LRTFLITE_TORTURE", "1"))
Change = Callable[[Checkpoint], object]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for nothing; power cuts are simulated from the recorded calls, so no disk is flushed."""
    monkeypatch.setattr(regular_file, "PAUSES", (0, 0))
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.fixture(autouse=True, params=[0, 1 << 20], ids=["apart", "inline"])
def tensors(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Give tensors a file of their own, as those of a trunk have, or put them into the state's."""
    monkeypatch.setattr("lrtflite.state.writing.MAX_INLINE", request.param)


def commit(checkpoint: Checkpoint) -> None:
    checkpoint.commit(state(3))


def rename(checkpoint: Checkpoint) -> None:
    """Commit a state that shares its tensors and rows with the one before."""
    found = read_state(checkpoint.folder)
    meta = replace(found.meta, labels=("mug", None))
    checkpoint.commit(State(found.arrays, found.memory, meta))


def undo(checkpoint: Checkpoint) -> None:
    from lrtflite.state.reading import read_opened

    previous = checkpoint.previous()
    checkpoint.undo(previous, read_opened(previous))


CHANGES = {"commit": commit, "rename": rename, "undo": undo}


def seen(folder: Path) -> tuple[int, str | None]:
    """Return the number and label of the state in a folder, whose parts must agree."""
    found = read_state(folder)
    return value(found), found.meta.labels[0]


BEFORE, AFTER = (2, "cup"), {"commit": (3, "cup"), "rename": (2, "mug"), "undo": (1, "cup")}


@pytest.fixture
def taught(tmp_path: Path) -> Path:
    """Return a folder with the states 1 and 2."""
    put(tmp_path / "state", 1, 2)
    return tmp_path / "state"


def changing(folder: Path, change: Change) -> None:
    checkpoint = Checkpoint(folder)
    try:
        checkpoint.load()
        change(checkpoint)
    finally:
        checkpoint.close()


def check_restart(folder: Path, expected: set[tuple[int, str]]) -> None:
    """A restart finds one of the states, and can go on from it."""
    assert seen(folder) in expected
    put(folder, 9)
    assert seen(folder)[0] == 9


@pytest.mark.parametrize("name", CHANGES)
def test_a_kill_at_every_call(taught: Path, name: str) -> None:
    before = contents(taught)
    with recording() as recorder:
        changing(taught, CHANGES[name])
    assert seen(taught) == AFTER[name]
    ended = set()
    for number in range(len(recorder.calls)):
        write_all(taught, before)
        child = os.fork()
        if child == 0:

            def kill(at: int, _: str) -> None:
                if at == number:  # noqa: B023
                    os.kill(os.getpid(), signal.SIGKILL)

            with recording(kill):
                changing(taught, CHANGES[name])
            vars(os)["_exit"](0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        ended.add(seen(taught))
        check_restart(taught, {BEFORE, AFTER[name]})
    assert ended == {BEFORE, AFTER[name]}


@pytest.mark.parametrize("name", CHANGES)
def test_every_power_cut_that_the_calls_allow(taught: Path, tmp_path: Path, name: str) -> None:
    before = contents(taught)
    with recording() as recorder:
        changing(taught, CHANGES[name])
    ended, count = set(), 0
    for files in power_cuts(before, recorder.changes):
        write_all(tmp_path / "cut", files)
        ended.add(seen(tmp_path / "cut"))
        check_restart(tmp_path / "cut", {BEFORE, AFTER[name]})
        count += 1
    assert ended == {BEFORE, AFTER[name]}
    assert count > 10


def test_every_power_cut_of_the_first_commit(tmp_path: Path) -> None:
    """There is no generation to fall back to: the folder has a whole one, or none at all."""
    with recording() as recorder:
        put(tmp_path / "state", 1)
    ended = set()
    for files in power_cuts({}, recorder.changes):
        write_all(tmp_path / "cut", files)
        has_one = any(name.startswith("state-") for name in files)
        if has_one:
            assert seen(tmp_path / "cut") == (1, "cup")
        ended.add(has_one)
        put(tmp_path / "cut", 9)
        assert seen(tmp_path / "cut")[0] == 9
    assert ended == {True, False}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
@pytest.mark.parametrize("fails", FAILS)
@pytest.mark.parametrize("name", CHANGES)
def test_a_disk_that_fails_at_every_call(
    taught: Path, tmp_path: Path, name: str, number: int, fails: str
) -> None:
    before = contents(taught)
    with recording() as recorder:
        changing(taught, CHANGES[name])
    for at, called in enumerate(recorder.calls):
        if fails == "flushes" and called != "fsync":
            continue  # the same as from the next flush on
        write_all(taught, before)

        def fail(now: int, call: str) -> None:
            if call != "close" and FAILS[fails](now, at, call):  # noqa: B023
                raise OSError(number, os.strerror(number))

        try:
            with recording(fail) as failed:
                changing(taught, CHANGES[name])
            said = ""
        except StateError as error:
            said = str(error)
        if said:  # the message is true
            expected = AFTER[name] if "the new state is in place" in said else BEFORE
            assert seen(taught) == expected, f"{said} (call {at}, {called})"
            if number == errno.EIO:  # also after a power cut
                allowed = {BEFORE, AFTER[name]} if "a power cut may" in said else {BEFORE}
                for files in power_cuts(before, failed.changes, at_end=True):
                    write_all(tmp_path / "cut", files)
                    assert seen(tmp_path / "cut") in allowed, said
        check_restart(taught, {BEFORE, AFTER[name]})


def damaged_files(files: Files, rng: np.random.Generator) -> list[tuple[str, bytes]]:
    """Return files with a flipped bit at any byte, and files cut at any byte of their header."""
    found = []
    for name, content in files.items():
        places = range(len(content)) if TIMES > 1 else rng.choice(len(content), 60, replace=False)
        for place in map(int, places):
            for bit in range(8) if TIMES > 1 else [int(rng.integers(8))]:
                flipped = bytearray(content)
                flipped[place] ^= 1 << bit
                found.append((name, bytes(flipped)))
        header = 8 + int.from_bytes(content[:8], "little")
        ends = [*range(header), *rng.integers(header, len(content), 1000).tolist()]
        chosen = ends if TIMES > 1 else rng.choice(ends, 40, replace=False).tolist()
        found += [(name, content[:end]) for end in chosen]
    return found


def test_flipped_bits_and_missing_ends_everywhere(tmp_path: Path) -> None:
    """Some files are shared: then a generation opens without a row, or an older one opens."""
    folder = tmp_path / "state"
    checkpoint = Checkpoint(folder)
    checkpoint.load()
    content = patterns(0, 30)
    for number in (1, 2):
        content = checkpoint.commit(state(number, memory=content))
    rename(checkpoint)
    checkpoint.close()
    files, rows = contents(folder), set()
    for name, damaged in damaged_files(files, np.random.default_rng(0)):
        write_all(folder, {**files, name: damaged})
        found = read_state(folder)
        number = found.meta.sessions
        assert number in (1, 2), name
        assert set(found.arrays["head/cw"].reshape(-1).tolist()) == {number}
        kept = found.memory.rows.all()
        assert set(map(tuple, kept)) <= {(0, k, 0) for k in range(30)}
        rows.add(len(kept))
    assert {29, 30} <= rows, "a flipped bit of a row costs that row"
    put(folder, 9)
    assert seen(folder) == (9, "cup")


def test_flipped_bits_and_missing_ends_after_many_sessions(tmp_path: Path) -> None:
    """Each added a row, and the trunk never changed: the newest session is lost at most."""
    folder, last = tmp_path / "state", 12
    checkpoint, memory = Checkpoint(folder), patterns(0, 0)
    checkpoint.load()
    for number in range(last + 1):
        row = np.array([0, number, 0], np.float32)
        memory = memory.with_rows([row], np.array([number]))
        memory = checkpoint.commit(state(number, memory=memory))
    checkpoint.close()
    files, lost = contents(folder), set()
    cases = damaged_files(files, np.random.default_rng(0))
    for name, damaged in cases if TIMES > 1 else cases[::8]:
        (folder / name).write_bytes(damaged)
        found = read_state(folder)
        lost.add((last - found.meta.sessions, last + 1 - len(found.memory)))
        (folder / name).write_bytes(files[name])
    # Nothing; or a row; or the newest session, which added a row.
    assert lost == {(0, 0), (0, 1), (1, 1)}


def test_a_second_process_is_kept_out(taught: Path) -> None:
    script = "import sys; from lrtflite.state.checkpoint import Checkpoint; Checkpoint(sys.argv[1])"
    command = [sys.executable, "-c", script, str(taught)]
    checkpoint = Checkpoint(taught)
    held = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "in use by another learner" in held.stderr
    checkpoint.close()
    assert subprocess.run(command, check=False).returncode == 0
