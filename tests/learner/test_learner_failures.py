"""After any failure, the learner and its state on disk are as before."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from learning import DEFAULTS, TRAINING, fingerprint, frames_of, latents_of
from lrtflite import Learner, Progress
from lrtflite.errors import (
    InputError,
    LrtfliteError,
    NoFreeSlot,
    SessionCancelled,
    StateError,
)
from lrtflite.files import reading as regular_file
from lrtflite.state.checkpoint import Checkpoint
from lrtflite.state.folder import read_state
from lrtflite.state.reading import State, write_state


@pytest.mark.parametrize("phase", ["extract", "train"])
@pytest.mark.parametrize("stored", [True, False])
def test_a_cancelled_session_leaves_no_trace(
    open_learner: Callable[..., Learner], tmp_path: Path, phase: str, stored: bool
) -> None:
    learner = open_learner(tmp_path if stored else None)
    learner.learn(frames_of(0), "a", training=TRAINING)
    before, cancel = fingerprint(learner), threading.Event()

    def stop(progress: Progress) -> None:
        if progress.phase == phase:
            cancel.set()

    with pytest.raises(SessionCancelled, match=phase):
        learner.learn(frames_of(1), "b", training=TRAINING, on_progress=stop, cancel=cancel)
    assert fingerprint(learner) == before
    # The next session goes as if the cancelled one had not happened.
    other = open_learner()
    other.learn(frames_of(0), "a", training=TRAINING)
    for each in (learner, other):
        each.learn(frames_of(2), "c", training=TRAINING)
    assert fingerprint(learner) == fingerprint(other)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOMEM, errno.ESTALE])
def test_a_memory_that_cannot_be_read_is_a_state_error(
    open_learner: Callable[..., Learner],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
) -> None:
    """While a session trains, and while a bundle is shipped; once it can be read, all is well."""
    monkeypatch.setattr(regular_file, "PAUSES", (0, 0))
    monkeypatch.setattr("lrtflite.replay.store.MAX_IN_RAM", 0)
    learner = open_learner(tmp_path / "state")
    learner.learn_latents(latents_of(0), "a", training=TRAINING)
    before = fingerprint(learner)

    def fail(*_: Any) -> int:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "preadv", fail)
        with pytest.raises(StateError, match=r"Cannot read .*rows-.*; nothing was changed, try"):
            learner.learn_latents(latents_of(1), "b", training=TRAINING)
        with pytest.raises(StateError, match=r"Cannot read .*rows-"):
            learner.ship(tmp_path / "shipped")
    assert fingerprint(learner) == before
    learner.learn_latents(latents_of(1), "b", training=TRAINING)
    for path in (tmp_path / "state").glob("rows-*"):
        os.truncate(path, 100)
    with pytest.raises(StateError, match="its end is missing"):
        learner.learn_latents(latents_of(2), "c", training=TRAINING)
    assert learner.learned == ("a", "b")


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_a_failed_session_leaves_no_trace(
    open_learner: Callable[..., Learner], tmp_path: Path, error: type[BaseException]
) -> None:
    learner = open_learner(tmp_path)
    learner.learn(frames_of(0), "a", training=TRAINING)
    before = fingerprint(learner)

    def camera() -> Iterator[np.ndarray]:
        yield from frames_of(1)
        raise error

    with pytest.raises(error):
        learner.learn(camera(), "b")
    assert fingerprint(learner) == before


def test_a_full_disk_leaves_the_state_before(
    open_learner: Callable[..., Learner], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = open_learner(tmp_path / "state", replay_size=60)
    learner.learn_latents(latents_of(0), "a", training=TRAINING)
    before = fingerprint(learner)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        for change in (
            lambda: learner.learn_latents(latents_of(1), "b", training=TRAINING),
            lambda: learner.forget("a"),
            lambda: learner.rename("a", "z"),
        ):
            with pytest.raises(StateError, match="No space left"):
                change()
            assert fingerprint(learner) == before
    learner.learn_latents(latents_of(1), "b", training=TRAINING)
    assert learner.labels[:2] == ("a", "b")


def test_no_free_slot(open_learner: Callable[..., Learner]) -> None:
    learner = open_learner()
    learner.learn_latents(latents_of(0, 50), [f"class {i}" for i in range(50)])
    with pytest.raises(NoFreeSlot, match="all 50 are taken"):
        learner.learn_latents(latents_of(1), "one more")
    learner.learn_latents(latents_of(1), "class 7")


def test_a_closed_learner_changes_nothing(
    open_learner: Callable[..., Learner], tmp_path: Path
) -> None:
    closed = open_learner(tmp_path)
    closed.close()
    owner = open_learner(tmp_path)
    owner.learn_latents(latents_of(0), "kept", training=TRAINING)
    for change in (
        lambda: closed.learn_latents(latents_of(1), "intruder", training=TRAINING),
        lambda: closed.rename("kept", "lost"),
        lambda: closed.forget("kept"),
        closed.undo,
    ):
        with pytest.raises(StateError, match="closed"):
            change()
    assert read_state(tmp_path).meta.labels[:2] == ("kept", None)


def test_a_learner_that_closes_as_a_change_begins_deletes_nothing(
    open_learner: Callable[..., Learner], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = open_learner(tmp_path)
    learner.learn_latents(latents_of(0), "kept", training=TRAINING)
    alone = learner.committed.alone

    def closed_first() -> AbstractContextManager[None]:
        """Let another thread close the learner just before the change begins."""
        learner.close()
        return alone()

    monkeypatch.setattr(learner.committed, "alone", closed_first)
    with pytest.raises(StateError, match="closed"):
        learner.undo()
    assert read_state(tmp_path).meta.labels[0] == "kept"


def test_closing_while_a_session_runs_gives_the_state_to_the_next(
    open_learner: Callable[..., Learner], tmp_path: Path
) -> None:
    learner = open_learner(tmp_path)

    def close(progress: Progress) -> None:
        if progress.phase == "train":
            learner.close()
            with pytest.raises(StateError, match="in use"):
                open_learner(tmp_path)

    with pytest.raises(StateError, match="closed meanwhile"):
        learner.learn_latents(latents_of(0), "lost", training=TRAINING, on_progress=close)
    assert open_learner(tmp_path).labels[0] is None


def test_an_undo_that_cannot_be_restored_changes_nothing(
    open_learner: Callable[..., Learner], tmp_path: Path
) -> None:
    learner = open_learner(tmp_path, replay_size=50)
    learner.learn_latents(latents_of(0, 30), "a", training=TRAINING)
    learner.forget("a")
    learner.close()
    small = open_learner(tmp_path, replay_size=10)
    before = fingerprint(small)
    with pytest.raises(InputError, match="at least the 30 patterns"):
        small.undo()
    assert fingerprint(small) == before
    small.close()
    assert open_learner(tmp_path, replay_size=10).labels[0] is None


def test_weights_that_overflow_in_the_last_step(open_learner: Callable[..., Learner]) -> None:
    learner = open_learner()
    before = fingerprint(learner)
    with pytest.raises(InputError, match="diverged"):
        learner.learn_latents(latents_of(0), "a", training=DEFAULTS.with_options(lr=1e38, epochs=1))
    assert fingerprint(learner) == before


def test_a_memory_update_that_is_not_committed_is_taken_back(
    open_learner: Callable[..., Learner], monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = open_learner(replay_size=30)
    learner.learn_latents(latents_of(0), "a", training=TRAINING)
    before = fingerprint(learner)
    monkeypatch.setattr(learner.committed, "commit", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        learner.learn_latents(latents_of(1), "b", training=TRAINING)
    assert fingerprint(learner) == before


def test_one_session_at_a_time(open_learner: Callable[..., Learner]) -> None:
    learner = open_learner()

    def again(_: Progress) -> None:
        learner.learn_latents(latents_of(1), "b")

    with pytest.raises(LrtfliteError, match="running already"):
        learner.learn_latents(latents_of(0), "a", on_progress=again)


def test_a_state_belongs_to_its_bundle(
    open_learner: Callable[..., Learner], demo: Path, tmp_path: Path
) -> None:
    open_learner(tmp_path).close()
    state = read_state(tmp_path)
    other = State(state.arrays, state.memory, replace(state.meta, bundle="x"))
    write_state(tmp_path / "state-00000009.safetensors", other)
    with pytest.raises(StateError, match="another bundle"):
        open_learner(tmp_path)
    # The lock is released.
    Checkpoint(tmp_path).close()


def test_a_memory_that_is_too_small_for_the_state(
    open_learner: Callable[..., Learner], tmp_path: Path
) -> None:
    learner = open_learner(tmp_path)
    learner.learn_latents(latents_of(0), "a", training=TRAINING)
    learner.close()
    with pytest.raises(InputError, match="at least the 45 patterns"):
        open_learner(tmp_path, replay_size=10)
