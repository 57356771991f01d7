"""A learner that only predicts, from a folder that it may not write."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from learning import TRAINING, latents_of
from lrtflite import Learner
from lrtflite.errors import StateError

Open = Callable[..., Learner]


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_it_answers_and_changes_nothing(open_learner: Open, tmp_path: Path) -> None:
    state = tmp_path / "state"
    learner = open_learner(state)
    learner.learn_latents(latents_of(0), "cup", training=TRAINING)
    learner.learn_latents(latents_of(1), "hat", training=TRAINING)
    expected = learner.probabilities(latents_of(1, 5))
    learner.close()
    before = content(state)
    reader = open_learner(state, read_only=True)
    np.testing.assert_array_equal(reader.probabilities(latents_of(1, 5)), expected)
    assert (reader.learned, reader.sessions) == (("cup", "hat"), 2)
    for change in (
        lambda: reader.learn_latents(latents_of(0), "cup"),
        lambda: reader.forget("cup"),
        lambda: reader.rename("cup", "mug"),
        reader.undo,
    ):
        with pytest.raises(StateError, match="read-only; open it without read_only"):
            change()
    reader.close()
    assert content(state) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes to every folder")
def test_a_folder_without_the_right_to_write(open_learner: Open, tmp_path: Path) -> None:
    state = tmp_path / "state"
    open_learner(state).close()
    state.chmod(0o500)
    try:
        with pytest.raises(StateError, match="read_only=True"):
            open_learner(state)
        assert open_learner(state, read_only=True).sessions == 0
    finally:
        state.chmod(0o700)


def test_several_may_read_what_one_writes(open_learner: Open, tmp_path: Path) -> None:
    writer = open_learner(tmp_path, replay_size=500)
    writer.learn_latents(latents_of(0), "cup", training=TRAINING)
    enough = threading.Event()

    def write() -> None:
        while not enough.is_set():
            writer.learn_latents(latents_of(1, 5), "hat", training=TRAINING)

    thread = threading.Thread(target=write)
    thread.start()
    seen = []
    try:
        # If a generation disappears while it is read, the newest one is read again.
        for _ in range(8):
            with Learner.open(writer.bundle, tmp_path, read_only=True) as reader:
                seen.append(reader.sessions)
    finally:
        enough.set()
        thread.join()
    assert seen == sorted(seen)
    assert seen[-1] > seen[0]


def test_a_folder_without_a_state(open_learner: Open, tmp_path: Path) -> None:
    for path, found in ((tmp_path, "is empty"), (tmp_path / "nowhere", "does not exist")):
        with pytest.raises(StateError, match=f"{path}, which {found}; check the path"):
            open_learner(path, read_only=True)
        assert list(tmp_path.iterdir()) == []


def test_a_damaged_generation_is_left_where_it_is(
    open_learner: Open, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state = tmp_path / "state"
    learner = open_learner(state)
    learner.learn_latents(latents_of(0), "cup", training=TRAINING)
    learner.close()
    newest = max(state.glob("state-*.safetensors"))
    newest.write_bytes(newest.read_bytes()[:-100])
    before = content(state)
    assert open_learner(state, read_only=True).sessions == 0
    assert "using the generation before it" in caplog.text
    assert content(state) == before


def test_without_a_state_it_has_the_classes_of_the_bundle(open_learner: Open) -> None:
    reader = open_learner(read_only=True)
    assert reader.learned == ()
    with pytest.raises(StateError, match="read-only"):
        reader.learn_latents(latents_of(0), "cup")


def test_a_copy_on_a_file_system_that_is_gone(open_learner: Open, tmp_path: Path) -> None:
    """An open learner reads nothing from the folder again."""
    state = tmp_path / "state"
    learner = open_learner(state)
    learner.learn_latents(latents_of(0), "cup", training=TRAINING)
    learner.close()
    reader = open_learner(state, read_only=True)
    shutil.rmtree(state)
    assert reader.predict_latents(latents_of(0, 1))[0][0].label == "cup"
