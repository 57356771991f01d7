"""The state folder: damaged files, locks, and folders that are none."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lrtflite.errors import DamagedState, StateError
from lrtflite.files import bundle_file
from lrtflite.state import reading
from lrtflite.state.checkpoint import Checkpoint
from lrtflite.state.folder import StateFolder, read_state
from lrtflite.state.reading import State, read_opened
from lrtflite.state.summary import summarise
from states import put, state, value


@pytest.fixture(autouse=True)
def tensors_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give tensors a file of their own, as those of a trunk have."""
    monkeypatch.setattr("lrtflite.state.writing.MAX_INLINE", 0)


def names(folder: Path, kind: str = "") -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith(kind))


def flip(content: bytes) -> bytes:
    place = len(content) // 2
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


@pytest.mark.parametrize("kind", ["state", "tensors", "rows"])
@pytest.mark.parametrize(
    "damage", [flip, lambda content: content[: len(content) // 2], lambda _: None], ids=str
)
def test_damage_falls_back_to_the_generation_before(
    tmp_path: Path,
    kind: str,
    damage: Callable[[bytes], bytes | None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    put(tmp_path, 1, 2)
    newest = tmp_path / max(names(tmp_path, kind))
    content = damage(newest.read_bytes())
    newest.unlink()
    if content is not None:
        newest.write_bytes(content)
    checkpoint = Checkpoint(tmp_path)
    assert value(checkpoint.load()) == 1
    if content is not None or kind != "state":
        assert "damaged" in caplog.text
    # Commits go on from the generation that is left.
    checkpoint.commit(state(3))
    assert value(checkpoint.load()) == 3
    checkpoint.close()


def test_one_damaged_file_never_spoils_all_generations(tmp_path: Path) -> None:
    """A change of names alone shares its tensors with the generation before; a third stays."""
    put(tmp_path, 1, 2)
    checkpoint = Checkpoint(tmp_path)
    found = checkpoint.load()
    assert found is not None
    arrays = {**found.arrays, "head/trunk": np.ones(64, np.float32)}
    checkpoint.commit(State(arrays, found.memory, found.meta))
    for _ in range(3):
        checkpoint.commit(State(arrays, found.memory, found.meta))
    checkpoint.close()
    for name in names(tmp_path, "tensors"):
        whole = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(flip(whole))
        assert read_state(tmp_path).arrays["head/trunk"].shape == (64,)
        (tmp_path / name).write_bytes(whole)


def test_damage_on_a_disk_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, 1, 2)
    (tmp_path / "state-00000001.safetensors").write_bytes(b"")

    def read_only(*_: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    checkpoint = Checkpoint(tmp_path)
    monkeypatch.setattr(os, "replace", read_only)
    assert value(checkpoint.load()) == 1
    checkpoint.close()


def test_only_damaged_generations_is_an_error_with_advice(tmp_path: Path) -> None:
    put(tmp_path, 1, 2)
    for path in tmp_path.glob("state-*"):
        path.write_bytes(b"")
    with pytest.raises(DamagedState, match="only damaged ones; restore the folder from a"):
        read_state(tmp_path)
    checkpoint = Checkpoint(tmp_path)
    for _ in range(2):  # they stay, and no new state takes their place
        with pytest.raises(DamagedState, match="only damaged ones"):
            checkpoint.load()
    checkpoint.close()


@pytest.mark.parametrize("kind", ["fifo", "link", "folder"])
@pytest.mark.parametrize("name", ["state-00000001", "tensors-00000001", "rows-00000001"])
def test_a_file_that_is_none_is_damage_and_no_hang(tmp_path: Path, name: str, kind: str) -> None:
    folder = tmp_path / "state"
    put(folder, 1, 2)
    path = folder / f"{name}.safetensors"
    outside = path.rename(tmp_path / "outside")
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(outside)
    else:
        path.mkdir()
    assert value(read_state(folder)) == 1


def test_two_learners_cannot_share_a_state(tmp_path: Path) -> None:
    first = Checkpoint(tmp_path)
    with pytest.raises(StateError, match="in use"):
        Checkpoint(tmp_path)
    # There is no file whose deletion would let a second one in.
    assert names(tmp_path) == []
    first.close()
    Checkpoint(tmp_path).close()


def test_a_fork_does_not_write(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    checkpoint.commit(state(1))
    leave = vars(os)["_exit"]
    child = os.fork()
    if child == 0:
        try:
            checkpoint.commit(state(2))
        except StateError as error:
            leave(7 if "got a fork of it" in str(error) else 8)
        leave(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert value(read_state(tmp_path)) == 1
    checkpoint.close()


def test_a_fork_does_not_hold_the_folder_of_its_parent(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writing)
        os.read(reading, 1)  # until the parent is done
        vars(os)["_exit"](0)
    checkpoint.close()
    Checkpoint(tmp_path).close()
    os.close(writing)
    os.waitpid(child, 0)
    os.close(reading)


def test_a_lock_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", broken)
    with pytest.raises(StateError, match="No locks available"):
        Checkpoint(tmp_path)


def test_unusable_paths(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(StateError, match="Cannot use"):
        Checkpoint(file / "state")
    with pytest.raises(StateError, match="no state"):
        read_state(tmp_path)


def test_a_file_named_lock_is_not_a_state(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("somebody's")
    with pytest.raises(StateError, match="with lock in it; choose another path"):
        Checkpoint(tmp_path)
    assert names(tmp_path) == ["lock"]


@pytest.mark.parametrize("name", ["state-000000000007.safetensors", "state-0000007.safetensors"])
def test_names_that_no_writer_makes_are_no_generations(tmp_path: Path, name: str) -> None:
    put(tmp_path, 1, 2)
    (tmp_path / name).write_bytes(b"somebody's")
    assert value(read_state(tmp_path)) == 2
    put(tmp_path, 3)
    assert value(read_state(tmp_path)) == 3


def test_a_generation_that_would_not_be_found_again_is_not_written(tmp_path: Path) -> None:
    put(tmp_path, 1)
    (tmp_path / "state-00000000.safetensors").rename(tmp_path / "state-999999999999.safetensors")
    with pytest.raises(StateError, match="got 999999999999; open a new state path"):
        put(tmp_path, 2)
    assert value(read_state(tmp_path)) == 1


def test_a_listing_that_fails_once_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, 1)
    real, calls = os.listdir, list[Any]()

    def once(path: Any) -> list[str]:
        calls.append(path)
        if len(calls) == 1:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(path)

    monkeypatch.setattr(os, "listdir", once)
    assert value(read_state(tmp_path)) == 1


@pytest.mark.parametrize("kind", ["state", "tensors", "rows"])
def test_a_reader_begins_again_if_the_writer_removes_what_it_reads(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, 1, 2)
    real = reading.FileSource
    ahead = Checkpoint(tmp_path)
    ahead.load()

    def open_with(source: Any) -> None:
        for module in (bundle_file, reading):
            monkeypatch.setattr(module, "FileSource", source)

    def source(path: Path) -> Any:
        open_with(real)
        if path.name.startswith(kind):
            for number in (3, 4, 5):
                ahead.commit(state(number))
        else:
            open_with(source)
        return real(path)

    open_with(source)
    assert value(read_state(tmp_path)) == 5
    ahead.close()


def test_a_missing_file_is_damage_for_readers_too(tmp_path: Path) -> None:
    put(tmp_path, 1, 2)
    (tmp_path / "tensors-00000001.safetensors").unlink()
    folder = StateFolder(tmp_path)
    found = folder.newest(lambda opened, salvage: read_opened(opened, salvage=salvage))
    assert value(found) == 1
    assert summarise(tmp_path).sessions == 1


def test_a_folder_of_other_files_with_a_lock_is_left_alone(tmp_path: Path) -> None:
    for name in ("lock", "draft.tmp", ".draft.part"):
        (tmp_path / name).write_text("somebody's")
    with pytest.raises(StateError, match=r"Expected a state folder, .* choose another path"):
        Checkpoint(tmp_path)
    assert names(tmp_path) == [".draft.part", "draft.tmp", "lock"]
