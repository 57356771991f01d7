"""The device learner, on every installed runtime."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cwr_reference import cwr_session
from learning import DEFAULTS, TRAINING, alike_latents, fingerprint, frames_of, latents_of
from lrtflite import Learner, Progress
from lrtflite.bundle.bundle import Bundle
from lrtflite.contract.signatures import ZERO
from lrtflite.errors import StateError
from lrtflite.replay.policies import POLICIES


@pytest.mark.parametrize("head_start", [0.0, 1.0])
def test_sessions_follow_cwr_star(
    open_learner: Callable[..., Learner], runtime: str, head_start: float
) -> None:
    learner = open_learner(runtime=runtime)
    training = TRAINING.with_options(head_start=head_start)
    cw, past = np.zeros((50, 256)), np.zeros(50)
    for kind in (0, 1, 2, 0):
        recorded: list[tuple[np.ndarray, np.ndarray]] = []
        stored = np.bincount(learner.memory.slots, minlength=50)
        run = learner.committed.working.run

        def record(name: str, _run: Any = run, _to: Any = recorded, **inputs: Any) -> Any:
            if name == "train":
                _to.append((inputs["latents"].copy(), inputs["targets"].copy()))
            return _run(name, **inputs)

        learner.committed.working.run = record  # type: ignore[assignment]
        report = learner.learn_latents(latents_of(kind), f"kind {kind}", training=training)
        learner.committed.working.run = run  # type: ignore[method-assign]

        # 45 new patterns with replays: `counts` has each pattern once, not once per epoch.
        counts = stored + 45 * (np.arange(50) == kind)
        cw, past, losses = cwr_session(
            cw,
            past,
            counts,
            recorded,
            lr=0.02,
            momentum=0.9,
            weight_decay=5e-4,
            head_start=head_start,
        )
        saved = learner.committed.serving.run("save", zero=ZERO)
        np.testing.assert_allclose(saved["cw"], cw, rtol=1e-4, atol=1e-6)
        np.testing.assert_array_equal(saved["past"], past)
        per_epoch = report.steps // 2
        assert report.loss == pytest.approx(np.mean(losses[-per_epoch:]), rel=1e-4)
        assert report.frames == 45
    probabilities = learner.probabilities(latents_of(1, 5, seed=7))
    scores = latents_of(1, 5, seed=7) @ cw[:3].T
    e = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(probabilities[:, :3], e / e.sum(-1, keepdims=True), rtol=1e-3)
    # A slot that never learned anything cannot be predicted.
    np.testing.assert_array_equal(probabilities[:, 3:], 0)


@pytest.mark.parametrize("policy", list(POLICIES))
def test_closing_changes_nothing(
    open_learner: Callable[..., Learner], runtime: str, tmp_path: Path, policy: str
) -> None:
    options = {"runtime": runtime, "policy": policy, "replay_size": 60, "seed": 3}
    straight = open_learner(tmp_path / "straight", **options)
    for kind in (0, 1, 2, 1):
        straight.learn_latents(latents_of(kind), f"kind {kind}", training=TRAINING)
        resumed = open_learner(tmp_path / "resumed", **options)
        resumed.learn_latents(latents_of(kind), f"kind {kind}", training=TRAINING)
        assert fingerprint(resumed) == fingerprint(straight)
        resumed.close()


def test_frames_and_latents_teach_the_same(
    open_learner: Callable[..., Learner], runtime: str
) -> None:
    by_frames, by_latents = (open_learner(runtime=runtime) for _ in range(2))
    for kind in (0, 1, 2):
        frames = frames_of(kind)
        # Twelve frames are few, so train for more epochs.
        longer = DEFAULTS.with_options(epochs=30)
        by_frames.learn(iter(frames), f"kind {kind}", training=longer)
        latents = by_latents.extract(frames)
        by_latents.learn_latents(latents, f"kind {kind}", training=longer)
    assert fingerprint(by_frames) == fingerprint(by_latents)
    for kind in (0, 1, 2):
        for prediction in by_frames.predict(frames_of(kind)):
            assert prediction[0].label == f"kind {kind}"
            assert sum(p.probability for p in prediction) == pytest.approx(1, abs=1e-5)


def test_one_label_per_frame(open_learner: Callable[..., Learner]) -> None:
    learner = open_learner()
    both = np.concatenate([latents_of(0), latents_of(1)])
    report = learner.learn_latents(both, ["a"] * 45 + ["b"] * 45, training=TRAINING)
    assert report.labels == ("a", "b")
    assert [p[0].label for p in learner.predict_latents(latents_of(1, 3), top=1)] == ["b"] * 3


def test_predict_answers_from_consolidated_weights_while_learning(
    open_learner: Callable[..., Learner],
) -> None:
    learner = open_learner()
    learner.learn_latents(latents_of(0), "kind 0", training=TRAINING)
    probe = np.concatenate([latents_of(0, 3), latents_of(1, 3)])
    before = learner.probabilities(probe)
    seen = []

    def look(progress: Progress) -> None:
        if progress.phase == "train":
            answers: list[np.ndarray] = []
            thread = threading.Thread(target=lambda: answers.append(learner.probabilities(probe)))
            thread.start()
            thread.join()
            seen.append(np.array_equal(answers[0], before))

    learner.learn_latents(latents_of(1), "kind 1", training=TRAINING, on_progress=look)
    assert len(seen) == 6
    assert all(seen)
    assert not np.array_equal(learner.probabilities(probe), before)


def test_progress(open_learner: Callable[..., Learner]) -> None:
    learner, heard = open_learner(), list[Progress]()
    report = learner.learn(frames_of(0), "a", training=TRAINING, on_progress=heard.append)
    assert [p for p in heard if p.phase == "extract"][-1] == Progress("extract", 12, 12)
    assert [p for p in heard if p.phase == "train"][-1] == Progress("train", report.steps, 2)
    assert heard[-1] == Progress("checkpoint", 1, 1)
    assert len(report.timings["extract"]) == 12
    assert len(report.timings["train"]) == len(report.timings["prepare"]) == report.steps
    # A running camera has no total.
    learner.learn(iter(frames_of(0)), "a", training=TRAINING, on_progress=heard.append)
    assert Progress("extract", 12, None) in heard


def test_undo(open_learner: Callable[..., Learner], tmp_path: Path) -> None:
    learner = open_learner(tmp_path)
    fresh = fingerprint(learner)
    learner.learn_latents(latents_of(0), "a", training=TRAINING)
    once = fingerprint(learner)
    learner.learn_latents(latents_of(1), "b", training=TRAINING)
    learner.undo()
    assert fingerprint(learner) == once
    assert learner.labels[:2] == ("a", None)
    with pytest.raises(StateError, match="Nothing to undo"):
        learner.undo()
    learner.close()
    # The undo is on disk, and the very first session can be undone too.
    again = open_learner(tmp_path / "other")
    again.learn_latents(latents_of(0), "a", training=TRAINING)
    again.undo()
    assert fingerprint(again) == fresh
    assert fingerprint(open_learner(tmp_path)) == once
    with pytest.raises(StateError, match="without a state path"):
        open_learner().undo()


def test_rename_and_forget(open_learner: Callable[..., Learner], tmp_path: Path) -> None:
    learner = open_learner(tmp_path)
    for kind, label in enumerate(("cup", "ball", "shoe")):
        learner.learn_latents(latents_of(kind), label, training=TRAINING)
    learner.rename("cup", "mug")
    learner.forget("ball")
    learner.close()
    learner = open_learner(tmp_path)
    assert learner.labels[:3] == ("mug", None, "shoe")
    assert set(learner.memory.slots.tolist()) == {0, 2}
    predicted = learner.predict_latents(latents_of(1, 3), top=3)
    assert {p.label for row in predicted for p in row} == {"mug", "shoe"}
    assert learner.probabilities(latents_of(1, 3))[:, 1].max() == 0
    # The slot can be taught again.
    learner.learn_latents(latents_of(5), "hat", training=TRAINING)
    assert learner.labels[:3] == ("mug", "hat", "shoe")
    assert learner.predict_latents(latents_of(5, 1))[0][0].label == "hat"


def test_a_number_is_a_name_unless_it_is_a_slot(open_learner: Callable[..., Learner]) -> None:
    learner = open_learner()
    learner.learn_latents(latents_of(0), 7, training=TRAINING)
    learner.learn_latents(latents_of(1), slot=7, training=TRAINING)
    report = learner.learn_latents(latents_of(2, 2), slot=np.array([7, 3]), training=TRAINING)
    assert report.labels == ("class 3", "class 7")
    assert list(learner.learned) == ["7", "class 3", "class 7"]
    assert [learner.labels.index(name) for name in learner.learned] == [0, 3, 7]
    learner.rename(7, 8)
    learner.rename(new="cup", slot=7)
    learner.forget(slot=3)
    assert list(learner.learned) == ["8", "cup"]
    learner.forget(np.int64(8))
    assert list(learner.learned) == ["cup"]
    assert set(learner.memory.slots.tolist()) == {7}


def test_few_pictures_of_each_class_are_all_remembered(
    open_learner: Callable[..., Learner],
) -> None:
    learner = open_learner()
    for kind in range(5):
        learner.learn_latents(latents_of(kind, 6), f"kind {kind}")
    for kind in range(5):
        rows = learner.predict_latents(latents_of(kind, 10, seed=5), top=1)
        assert [row[0].label for row in rows] == [f"kind {kind}"] * 10
    assert learner.learned == tuple(f"kind {kind}" for kind in range(5))


def test_the_class_taught_last_does_not_win_in_a_new_light(
    open_learner: Callable[..., Learner],
) -> None:
    def answers(head_start: float) -> tuple[float, float]:
        """Return the share of other kinds, in new lights, that is right, or taken for the last."""
        learner = open_learner()
        training = learner.training.with_options(head_start=head_start)
        for kind in range(12):
            learner.learn_latents(alike_latents(kind, day=kind), slot=kind, training=training)
        others = [alike_latents(kind, day) for kind in range(11) for day in range(100, 105)]
        found = learner.probabilities(np.concatenate(others)).argmax(axis=1)
        right = found == np.arange(11).repeat(len(found) // 11)
        return float(right.mean()), float(np.mean(found == 11))

    assert open_learner().training.values["head_start"] == 1
    right, last = answers(head_start=1)
    assert right > 0.8
    assert last < 0.1
    right, last = answers(head_start=0)
    assert last > 0.5, "what it is good for"


def test_a_single_frame_is_a_session(open_learner: Callable[..., Learner]) -> None:
    report = open_learner().learn(frames_of(0)[0], "a", training=TRAINING)
    assert report.frames == 1


def test_a_state_keeps_its_memory_options(
    open_learner: Callable[..., Learner], demo: Path, tmp_path: Path
) -> None:
    open_learner(tmp_path, replay_size=7, policy="balanced").close()
    with Learner.open(demo, tmp_path) as learner:
        assert (learner.memory.capacity, learner.memory.policy) == (7, "balanced")
    with Learner.open(demo, tmp_path, replay_size=9) as learner:
        assert (learner.memory.capacity, learner.memory.policy) == (9, "balanced")


def test_the_device_side_needs_no_tensorflow(demo: Path, tmp_path: Path) -> None:
    script = f"""
import sys
for name in ("tensorflow", "tf_keras", "keras", "h5py", "matplotlib", "click"):
    sys.modules[name] = None  # importing it raises ImportError
import numpy as np
from lrtflite import Learner
learner = Learner.open({str(demo)!r}, {str(tmp_path / "state")!r})
frames = np.random.default_rng(0).integers(0, 255, (3, 128, 128, 3)).astype(np.uint8)
learner.learn(iter(frames), "noise")
print(learner.predict(frames[:1])[0][0].label)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "noise"


def test_the_bundle_is_reachable(open_learner: Callable[..., Learner], demo: Path) -> None:
    learner = open_learner()
    assert isinstance(learner.bundle, Bundle)
    assert learner.extract(frames_of(0, 2)).shape == (2, *learner.bundle.manifest.latent_shape)
