"""Old generations: damage to any one file costs the newest session at most."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lrtflite.replay.memory import Content
from lrtflite.state.checkpoint import Checkpoint
from lrtflite.state.folder import name_of, read_state, temporary
from lrtflite.state.history import Folded, History, TaughtSession
from lrtflite.state.meta import NO_STATE
from lrtflite.state.reading import State, open_state, read_opened
from lrtflite.state.record import Record
from lrtflite.state.writing import Generation, write_generation
from states import contents, patterns, state

pytestmark = pytest.mark.slow

SESSIONS = 12


@pytest.fixture(autouse=True)
def tensors_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give tensors a file of their own, as those of a trunk have; flush nothing, to save time."""
    monkeypatch.setattr("lrtflite.state.writing.MAX_INLINE", 0)
    monkeypatch.setattr(os, "fsync", lambda _: None)


def taught(number: int, memory: Content, *, trunk: int = 0) -> State:
    """Return the state after a session that added a row; `trunk` is in the trunk's values."""
    found = state(number, memory=one_more(memory))
    arrays = {**found.arrays, "head/trunk": np.full(64, trunk, np.float32)}
    return State(arrays, found.memory, found.meta)


def one_more(memory: Content) -> Content:
    return memory.with_rows([np.array([0, len(memory), 0], np.float32)], np.array([len(memory)]))


def teach(folder: Path, last: int, *, trunk: Callable[[int], int] = lambda _: 0) -> None:
    """Commit sessions until number `last`, each with a checkpoint that was just opened."""
    number = -1
    while number < last:
        with loaded(folder) as (checkpoint, found):
            number = 0 if found is None else found.meta.sessions + 1
            memory = patterns(0, 0) if found is None else found.memory
            checkpoint.commit(taught(number, memory, trunk=trunk(number)))


@contextmanager
def loaded(folder: Path) -> Iterator[tuple[Checkpoint, State | None]]:
    checkpoint = Checkpoint(folder)
    try:
        yield checkpoint, checkpoint.load()
    finally:
        checkpoint.close()


def damages(folder: Path, names: Iterable[str] | None = None) -> Iterator[str]:
    """Flip a bit in each region of each file, cut it, and remove it; yield its name each time.

    The regions are the length of the header, the header, the arrays and the digest.
    """
    rng = np.random.default_rng(0)
    for name in sorted(contents(folder) if names is None else names):
        path = folder / name
        whole = path.read_bytes()
        header, end = 8 + int.from_bytes(whole[:8], "little"), len(whole)
        for region in ((0, 8), (8, header), (header, end - 32), (end - 32, end)):
            flipped = bytearray(whole)
            flipped[int(rng.integers(*region))] ^= 1 << int(rng.integers(8))
            path.write_bytes(bytes(flipped))
            yield name
        path.write_bytes(whole[: end // 2])
        yield name
        path.unlink()
        yield name
        path.write_bytes(whole)


def check_every_damage(folder: Path, sessions: int) -> None:
    """Damage to one file leaves all sessions, or all but one; and all but one row."""
    used = names_in(folder, newest(folder))
    for name in damages(folder):
        left = read_state(folder)
        lost = sessions - left.meta.sessions
        assert lost <= 1, f"{lost} sessions lost by damage to {name}"
        assert len(left.memory) >= sessions, f"rows lost by damage to {name}"
        assert lost == 0 or name in used, f"a session lost by damage to the older {name}"


def newest(folder: Path) -> int:
    found = max(path.name for path in folder.glob("state-*.safetensors"))
    return int(found.removeprefix("state-").partition(".")[0])


def names_in(folder: Path, number: int) -> set[str]:
    """Return the files of a generation, with its own."""
    path = folder / name_of("state", number)
    return {path.name, *open_state(path).record.names}


def holding(folder: Path, array: str) -> set[str]:
    return {name for name, content in contents(folder).items() if array.encode() in content}


@pytest.mark.parametrize("trains", ["never", "at last", "by turns", "always"])
def test_damage_costs_one_session_at_most(tmp_path: Path, trains: str) -> None:
    """The trunk is the same in all generations, in some of them, or in none."""
    trunk: dict[str, Callable[[int], int]] = {
        "never": lambda number: 0,
        "at last": lambda number: number // SESSIONS,
        "by turns": lambda number: number // 2,
        "always": lambda number: number,
    }
    teach(tmp_path, SESSIONS, trunk=trunk[trains])
    check_every_damage(tmp_path, SESSIONS)


def test_a_learner_that_stays_open_keeps_the_promise(tmp_path: Path) -> None:
    with loaded(tmp_path) as (checkpoint, _):
        memory = patterns(0, 0)
        for number in range(SESSIONS + 1):
            memory = checkpoint.commit(taught(number, memory))
    check_every_damage(tmp_path, SESSIONS)


@pytest.mark.parametrize("kind", ["state", "tensors", "rows"])
def test_a_damaged_folder_is_whole_again_after_two_commits(tmp_path: Path, kind: str) -> None:
    teach(tmp_path, SESSIONS)
    [path] = tmp_path.glob(f"{kind}-*12.safetensors")
    path.write_bytes(path.read_bytes()[:-1])
    teach(tmp_path, SESSIONS + 1)
    # The two kept generations hold the latents of all sessions but the lost one.
    for _ in damages(tmp_path, set(contents(tmp_path)) - {f"{path.stem}.damaged"}):
        assert read_state(tmp_path).meta.sessions >= SESSIONS


@pytest.mark.parametrize("reopened", [True, False])
def test_unchanged_tensors_are_written_twice_and_never_again(
    tmp_path: Path, reopened: bool
) -> None:
    seen = set[str]()
    if reopened:
        for number in range(SESSIONS):
            teach(tmp_path, number)
            seen |= holding(tmp_path, "head/trunk")
    else:
        with loaded(tmp_path) as (checkpoint, _):
            memory = patterns(0, 0)
            for number in range(SESSIONS):
                memory = checkpoint.commit(taught(number, memory))
                seen |= holding(tmp_path, "head/trunk")
    assert seen == {"tensors-00000000.safetensors", "tensors-00000001.safetensors"}
    assert len(list(tmp_path.glob("state-*"))) == 2


def test_folded_sessions_are_written_twice_and_never_again(tmp_path: Path) -> None:
    """The arrays of 1,000 sessions exceed what goes into a generation."""
    entries = [TaughtSession(f"{k:032x}", k, ("cup",), (3,)) for k in range(1000)]
    history, seen = History((), Folded().with_entries(entries)), set[str]()
    with loaded(tmp_path) as (checkpoint, _):
        memory = patterns(0, 0)
        for number in range(6):
            found = taught(number, memory)
            meta = replace(found.meta, folded=history.folded.to_json(), sessions=1000 + number)
            arrays = {**found.arrays, **history.arrays}
            memory = checkpoint.commit(State(arrays, found.memory, meta))
            seen |= holding(tmp_path, "history/ids")
    assert len(seen) == 2
    for name in damages(tmp_path):
        assert read_state(tmp_path).meta.sessions >= 1004, name


def share_as_before(folder: Path) -> None:
    """Write a folder as earlier versions did: generations 0, 11 and 12, and their files.

    11 and 12 share their tensors, and rows. Generation 0 shares none; it was kept as a spare.
    """
    folder.mkdir()
    none = Generation(-1, Record(NO_STATE))
    before, memory = none, patterns(0, 0)
    for number in range(SESSIONS + 1):
        found = taught(number, memory, trunk=min(number, 1))
        shared = before if number > 1 else none
        needs_none = replace(before, record=replace(before.record, tensors=()))
        undo = number - 1 if number else None
        before, memory = write_generation(
            folder, needs_none, number, found, undo, [], shared=shared, compact=True
        )
        os.replace(temporary(folder, number), folder / name_of("state", number))
    kept = [names_in(folder, number) for number in (0, SESSIONS - 1, SESSIONS)]
    for name in set(contents(folder)) - set().union(*kept):
        (folder / name).unlink()


@pytest.mark.parametrize("number", [5, 6])
def test_a_folder_of_an_earlier_version_gets_its_copy_at_the_next_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    folder = tmp_path / "state"
    with monkeypatch.context() as patch:
        patch.setattr("lrtflite.state.record.STATE_FORMAT", number)
        share_as_before(folder)
    shared, trunk = names_in(folder, 12) & names_in(folder, 11), "tensors-00000001.safetensors"
    assert trunk in shared
    assert read_state(folder).meta.sessions == SESSIONS
    for name in damages(folder, shared - {trunk}):
        # A lost row costs no session, although generation 0 is whole.
        assert read_state(folder).meta.sessions == SESSIONS, name
    before = (folder / trunk).read_bytes()
    teach(folder, SESSIONS + 1, trunk=lambda _: 1)
    assert (folder / trunk).read_bytes() == before
    check_every_damage(folder, SESSIONS + 1)
    two = holding(folder, "head/trunk")
    assert len(two) == 2
    teach(folder, SESSIONS + 4, trunk=lambda _: 1)
    assert holding(folder, "head/trunk") == two, "written once, then used by turns"
    check_every_damage(folder, SESSIONS + 4)


def test_damage_after_undo_costs_no_session(tmp_path: Path) -> None:
    teach(tmp_path, SESSIONS)
    with loaded(tmp_path) as (checkpoint, _):
        previous = checkpoint.previous()
        checkpoint.undo(previous, read_opened(previous))
    for name in damages(tmp_path):
        assert read_state(tmp_path).meta.sessions == SESSIONS - 1, name
    assert len(holding(tmp_path, "head/trunk")) == 2
    teach(tmp_path, SESSIONS)
    check_every_damage(tmp_path, SESSIONS)


def test_a_damaged_generation_that_cannot_be_renamed_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    teach(tmp_path, 3)
    path = tmp_path / name_of("state", 3)
    path.write_bytes(path.read_bytes()[:-1])
    real = os.replace

    def fails(source: Path, target: Path) -> None:
        if str(target).endswith(".damaged"):
            raise OSError("not now")
        real(source, target)

    monkeypatch.setattr(os, "replace", fails)
    with loaded(tmp_path) as (checkpoint, found):
        assert found is not None
        checkpoint.commit(taught(3, found.memory))
        assert checkpoint.previous().record.meta.sessions == 2
    check_every_damage(tmp_path, 3)
