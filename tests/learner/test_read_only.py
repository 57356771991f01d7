"""A learner that only predicts, from a folder that it may not write."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from learning import TRAINING, latents_of
from lrtflite import Learner
from lrtflite.errors import StateError
from lrtflite.state.models import restore_models

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


SESSION = """
import sys
import numpy as np
from lrtflite import Learner
with Learner.open(*sys.argv[1:3], replay_size=300, policy="balanced") as learner:
    shape = learner.bundle.manifest.latent_shape
    learner.learn_latents(np.random.default_rng(7).random((12, *shape), np.float32), "hat")
"""


def test_reload_adopts_what_another_process_committed(open_learner: Open, tmp_path: Path) -> None:
    state = tmp_path / "state"
    writer = open_learner(state)
    writer.learn_latents(latents_of(0), "cup", training=TRAINING)
    reader = open_learner(state, read_only=True, replay_size=None)
    assert not reader.reload()
    writer.close()
    command = [sys.executable, "-c", SESSION, str(reader.bundle.path), str(state)]
    subprocess.run(command, check=True, capture_output=True)
    assert (reader.learned, reader.sessions) == (("cup",), 1)
    before = content(state)
    assert reader.reload()
    assert (reader.learned, reader.sessions) == (("cup", "hat"), 2)
    assert (reader.memory.capacity, reader.memory.policy) == (300, "balanced")
    assert not reader.reload()
    fresh = open_learner(state, read_only=True, replay_size=None)
    probes = latents_of(0, 9)
    np.testing.assert_array_equal(reader.probabilities(probes), fresh.probabilities(probes))
    np.testing.assert_array_equal(reader.memory.codes, fresh.memory.codes)
    assert content(state) == before


def test_reload_follows_an_undo(open_learner: Open, tmp_path: Path) -> None:
    writer = open_learner(tmp_path)
    for number, label in enumerate(("cup", "hat")):
        writer.learn_latents(latents_of(number), label, training=TRAINING)
    reader = open_learner(tmp_path, read_only=True)
    writer.undo()
    assert reader.reload()
    assert reader.learned == ("cup",)


@pytest.mark.parametrize("how", ["cut", "gone", "other bundle", "models"])
def test_after_a_failed_reload_the_old_state_answers(
    open_learner: Open, tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    writer = open_learner(state)
    writer.learn_latents(latents_of(0), "cup", training=TRAINING)
    reader = open_learner(state, read_only=True)
    expected = reader.probabilities(latents_of(0, 5))
    for number in (1, 2, 3):
        writer.learn_latents(latents_of(number), f"hat {number}", training=TRAINING)
    writer.close()
    if how == "gone":
        shutil.rmtree(state)
    elif how == "models":
        # Each generation fails once the models have taken it; then the old state is put back.
        failing = iter([True, False, True, False, True, False, True, False])

        def fail_first(arrays: Any, head: Any, features: Any) -> Any:
            found = restore_models(arrays, head, features)
            if next(failing):
                raise RuntimeError("odd")
            return found

        monkeypatch.setattr("lrtflite.state.committed.restore_models", fail_first)
    else:
        for path in state.glob("state-*"):
            whole = path.read_bytes()
            identity = reader.bundle.identity.encode()
            assert identity in whole
            swapped = whole.replace(identity, b"0" * len(identity))
            path.write_bytes(whole[:-50] if how == "cut" else swapped)
    with pytest.raises(StateError):
        reader.reload()
    np.testing.assert_array_equal(reader.probabilities(latents_of(0, 5)), expected)
    assert (reader.learned, reader.sessions) == (("cup",), 1)


def test_reload_never_goes_back_behind_a_damaged_generation(
    open_learner: Open, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state, spare = tmp_path / "state", tmp_path / "spare"
    writer = open_learner(state)
    writer.learn_latents(latents_of(0), "cup", training=TRAINING)
    shutil.copytree(state, spare)
    writer.learn_latents(latents_of(1), "hat", training=TRAINING)
    reader = open_learner(state, read_only=True)
    writer.close()
    # The generation that was opened is gone, a newer one is damaged, and older ones are whole.
    newest = max(state.glob("state-*.safetensors"))
    newest.rename(state / "state-00000009.safetensors").write_bytes(b"damaged")
    shutil.copytree(spare, state, dirs_exist_ok=True)
    assert not reader.reload()
    assert reader.learned == ("cup", "hat")
    assert "using the generation before it" in caplog.text


def test_who_cannot_reload(open_learner: Open, tmp_path: Path) -> None:
    for learner in (open_learner(tmp_path / "a"), open_learner(read_only=True)):
        with pytest.raises(StateError, match="opened with read_only=True and a state path"):
            learner.reload()
    reader = open_learner(tmp_path / "a", read_only=True)
    reader.close()
    with pytest.raises(StateError, match="is closed"):
        reader.reload()


def test_answers_during_reloads_are_of_one_state(open_learner: Open, tmp_path: Path) -> None:
    """One thread reloads while another asks: no answer mixes labels and weights of two states."""
    writer = open_learner(tmp_path)
    for number, label in enumerate(("cup", "hat")):
        writer.learn_latents(latents_of(number), label, training=TRAINING)
    reader = open_learner(tmp_path, read_only=True)
    probe, known, seen = latents_of(0, 2), {}, list[tuple[tuple[str, ...], bytes]]()
    known[reader.learned] = {reader.probabilities(probe).tobytes()}
    enough = threading.Event()

    def ask() -> None:
        while not enough.is_set():
            with reader.committed.answering:
                seen.append((reader.learned, reader.probabilities(probe).tobytes()))

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        for number in range(2, 8):
            writer.learn_latents(latents_of(number), f"mug {number}", training=TRAINING)
            known.setdefault(writer.learned, set()).add(writer.probabilities(probe).tobytes())
            assert reader.reload()
    finally:
        enough.set()
        thread.join()
    assert all(answer in known[learned] for learned, answer in seen)
    assert len({learned for learned, _ in seen}) > 1


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
