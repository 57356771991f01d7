"""Trunk and moments are part of the state: committed whole, or left unchanged."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lrtflite.state.committed as committed_module
from fake_bundle import TRAINING, frames, mean_of
from learning import fingerprint
from lrtflite import Learner, Progress
from lrtflite.contract.signatures import ZERO
from lrtflite.errors import InputError, SessionCancelled, StateError
from lrtflite.state.folder import read_state

Open = Callable[..., Learner]


def test_trunk_and_moments_are_in_the_state(open_deep: Open, tmp_path: Path) -> None:
    learner = open_deep(tmp_path / "state")
    for value in (10, 20, 30):
        learner.learn(frames(value, value + 5), f"{value}")
    arrays = read_state(tmp_path / "state").arrays
    assert arrays["features/mean"] == mean_of(learner.committed.features) > 0
    assert arrays["head/scale"] == 2 * TRAINING.epochs * 0.25
    before = fingerprint(learner)
    learner.close()
    opened = open_deep(tmp_path / "state")
    assert fingerprint(opened) == before
    # Both models of each pair are restored: the next session goes as in a learner never closed.
    straight = open_deep()
    for value in (10, 20, 30):
        straight.learn(frames(value, value + 5), f"{value}")
    for each in (opened, straight):
        each.learn(frames(40, 45), "40")
    assert fingerprint(opened) == fingerprint(straight)


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("phase", ["extract", "train", "adapt"])
def test_a_cancelled_session_leaves_trunk_and_moments(
    open_deep: Open, tmp_path: Path, phase: str, stored: bool
) -> None:
    learner = open_deep(tmp_path / "state" if stored else None)
    for value in (10, 20):
        learner.learn(frames(value), f"{value}")
    before, cancel = fingerprint(learner), threading.Event()
    mean = mean_of(learner.committed.features)
    assert mean > 0

    def stop(progress: Progress) -> None:
        if progress.phase == phase:
            cancel.set()

    with pytest.raises(SessionCancelled, match=phase):
        learner.learn(frames(*range(200, 208)), "b", on_progress=stop, cancel=cancel)
    assert fingerprint(learner) == before
    assert mean_of(learner.committed.adapting) == mean_of(learner.committed.features) == mean
    assert (
        learner.committed.working.run("save", zero=ZERO)["scale"]
        == learner.committed.serving.run("save", zero=ZERO)["scale"]
    )


def test_a_disk_that_fails_leaves_trunk_moments_and_memory(
    open_deep: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = open_deep(tmp_path / "state")
    for value in (10, 20):
        learner.learn(frames(*range(value, value + 8)), f"{value}")
    before = fingerprint(learner)

    def full(*_: Any, **__: Any) -> None:
        raise OSError("full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        for change in (
            lambda: learner.learn(frames(90, 91, 92), "b"),
            lambda: learner.forget("10"),
        ):
            with pytest.raises(StateError, match="full"):
                change()
            assert fingerprint(learner) == before
            assert mean_of(learner.committed.adapting) == mean_of(learner.committed.features)
        with pytest.raises(StateError, match="Cannot undo"):
            learner.undo()
    assert fingerprint(learner) == before


def test_undo_takes_trunk_and_moments_back(open_deep: Open, tmp_path: Path) -> None:
    learner = open_deep(tmp_path / "state")
    for value in (10, 20):
        learner.learn(frames(value), "a")
    before = fingerprint(learner)
    learner.learn(frames(200, 210), "b")
    assert fingerprint(learner) != before
    learner.undo()
    assert fingerprint(learner) == before
    assert mean_of(learner.committed.adapting) == mean_of(learner.committed.features)


def test_an_interrupt_after_the_disk_has_it_keeps_what_the_disk_has(
    open_deep: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = open_deep(tmp_path / "state")
    learner.learn(frames(10, 20), "a")
    real, times = committed_module.restore_models, []

    def interrupted(*args: Any) -> Any:
        times.append(1)
        if len(times) == 1:
            raise KeyboardInterrupt
        return real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(committed_module, "restore_models", interrupted)
        with pytest.raises(KeyboardInterrupt):
            learner.learn(frames(30, 40), "b")
    assert learner.sessions == 2
    before = fingerprint(learner)
    learner.close()
    assert fingerprint(open_deep(tmp_path / "state")) == before


def test_a_state_of_another_replay_layer_is_refused_and_left_alone(
    open_deep: Open, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    learner = open_deep(state)
    for value in (10, 20):
        learner.learn(frames(value), "a")
    learner.close()
    before = {path.name: path.read_bytes() for path in state.iterdir()}
    with pytest.raises(StateError) as caught:
        open_deep(state, "conv5_6/dw")
    assert "(conv5_6/dw), got one for another bundle (conv5_4/dw)" in str(caught.value)
    assert {path.name: path.read_bytes() for path in state.iterdir()} == before
    # The state is still free for its own bundle.
    assert open_deep(state).sessions == 2


def test_a_trunk_that_overflows_in_the_last_step_is_refused(open_deep: Open) -> None:
    learner = open_deep()
    learner.learn(frames(10), "a")
    before = fingerprint(learner)
    # float32 ends at 3.4e38, so two such steps overflow. No loss is computed after the second.
    burst = TRAINING.with_options(trunk_lr=3e38)
    rates = r"lr 0.5, momentum 0.9, weight_decay 0.0005, trunk_lr 3e\+38, moment_rate 0.125"
    with pytest.raises(InputError, match=rf"infinity in head/scale\) at {rates}; lower"):
        learner.learn(frames(10), "b", training=burst)
    assert fingerprint(learner) == before
