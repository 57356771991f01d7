"""The device learner, on every installed runtime."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lrtflite.checkpoint as checkpoint_module
from cwr_reference import cwr_session
from lrtflite import Learner, Progress, Training
from lrtflite.bundle import Bundle
from lrtflite.checkpoint import newest_state
from lrtflite.errors import (
    InputError,
    LrtfliteError,
    NoFreeSlot,
    SessionCancelled,
    StateError,
)
from lrtflite.runtime import installed_runtimes

TRAINING = Training(lr=0.02, epochs=2)


@pytest.fixture(params=["litert", "tflite"])
def runtime(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if name not in installed_runtimes():
        pytest.skip(f"the runtime {name} is not installed")
    return name


@pytest.fixture
def open_learner(demo: Path) -> Iterator[Callable[..., Learner]]:
    opened = []

    def make(state: Path | None = None, **options: Any) -> Learner:
        opened.append(Learner.open(demo, state, **{"replay_size": 200, **options}))
        return opened[-1]

    yield make
    for learner in opened:
        learner.close()


def latents_of(kind: int, count: int = 45, *, seed: int = 0) -> np.ndarray:
    """(count, 256) float32: a cloud of its own for each kind of object."""
    centre = np.random.default_rng(1000 + kind).exponential(1, 256)
    noise = np.random.default_rng((seed, kind)).normal(0, 0.3, (count, 256))
    return np.maximum(centre + noise, 0).astype(np.float32)


def frames_of(kind: int, count: int = 12) -> np.ndarray:
    """(count, 128, 128, 3) uint8: coloured blocks with noise, a pattern for each kind."""
    rng = np.random.default_rng(kind)
    blocks = rng.integers(40, 215, (8, 8, 3)).repeat(16, 0).repeat(16, 1)
    return (blocks + rng.integers(-25, 25, (count, 128, 128, 3))).astype(np.uint8)


def fingerprint(learner: Learner) -> list[bytes]:
    """Everything that a learner is, to the last bit."""
    state = learner._state()
    return [*(values.tobytes() for values in state.arrays.values()), repr(state.meta).encode()]


def test_sessions_follow_cwr_star(open_learner: Callable[..., Learner], runtime: str) -> None:
    learner = open_learner(runtime=runtime)
    cw, past = np.zeros((50, 256)), np.zeros(50)
    for kind in (0, 1, 2, 0):
        recorded: list[tuple[np.ndarray, np.ndarray]] = []
        stored = np.bincount(learner.memory.labels, minlength=50)
        run = learner._training.run

        def record(name: str, _run: Any = run, _to: Any = recorded, **inputs: Any) -> Any:
            if name == "train":
                _to.append((inputs["latents"].copy(), inputs["targets"].copy()))
            return _run(name, **inputs)

        learner._training.run = record  # type: ignore[method-assign]
        report = learner.learn_latents(latents_of(kind), f"kind {kind}", training=TRAINING)
        learner._training.run = run  # type: ignore[method-assign]

        # 45 new patterns beside replays: cur counts each pattern once, not the draws of epochs.
        counts = stored + 45 * (np.arange(50) == kind)
        cw, past, losses = cwr_session(
            cw, past, counts, recorded, lr=0.02, momentum=0.9, weight_decay=5e-4
        )
        saved = learner._serving.run("save")
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


@pytest.mark.parametrize("policy", ["algorithm1", "balanced"])
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
        # Twelve frames are few: more epochs than usual.
        longer = Training(epochs=30)
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
    learner, heard = open_learner(), []
    report = learner.learn(frames_of(0), "a", training=TRAINING, on_progress=heard.append)
    assert [p for p in heard if p.phase == "extract"][-1] == Progress("extract", 12, 12)
    assert [p for p in heard if p.phase == "train"][-1] == Progress("train", report.steps, 2)
    assert heard[-1] == Progress("checkpoint", 1, 1)
    assert len(report.timings["extract"]) == 12
    assert len(report.timings["train"]) == len(report.timings["prepare"]) == report.steps
    # A running camera has no total.
    learner.learn(iter(frames_of(0)), "a", training=TRAINING, on_progress=heard.append)
    assert Progress("extract", 12, None) in heard


@pytest.mark.parametrize("phase", ["extract", "train"])
@pytest.mark.parametrize("stored", [True, False])
def test_a_cancelled_session_never_was(
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
    # The session that follows is the one that would have come without it.
    other = open_learner()
    other.learn(frames_of(0), "a", training=TRAINING)
    for each in (learner, other):
        each.learn(frames_of(2), "c", training=TRAINING)
    assert fingerprint(learner) == fingerprint(other)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_a_session_that_breaks_never_was(
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
        patch.setattr(checkpoint_module.os, "fsync", full)
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
    assert set(learner.memory.labels.tolist()) == {0, 2}
    predicted = learner.predict_latents(latents_of(1, 3), top=3)
    assert {p.label for row in predicted for p in row} == {"mug", "shoe"}
    assert learner.probabilities(latents_of(1, 3))[:, 1].max() == 0
    # The slot can be taught anew.
    learner.learn_latents(latents_of(5), "hat", training=TRAINING)
    assert learner.labels[:3] == ("mug", "hat", "shoe")
    assert learner.predict_latents(latents_of(5, 1))[0][0].label == "hat"


def test_bad_input_leaves_the_learner_as_it_was(open_learner: Callable[..., Learner]) -> None:
    learner = open_learner()
    learner.learn_latents(latents_of(0), "a", training=TRAINING)
    before = fingerprint(learner)
    good, nan = latents_of(0), latents_of(0)
    nan[3, 5] = np.nan
    frames = frames_of(0)
    wrong: list[tuple[str, Callable[[], object]]] = [
        (r"\(n, 256\) of float32", lambda: learner.learn_latents(good[:, :100], "a")),
        (r"\(n, 256\) of float32", lambda: learner.learn_latents(good.astype(np.float64), "a")),
        ("NaN", lambda: learner.learn_latents(nan, "a")),
        ("NaN", lambda: learner.predict_latents(nan)),
        ("at least 1", lambda: learner.learn_latents(good[:0], "a")),
        ("empty session", lambda: learner.learn(iter(()), "a")),
        (r"0\.\.49, got 50", lambda: learner.learn_latents(good, 50)),
        ("2 for 45 frames", lambda: learner.learn_latents(good, ["a", "b"])),
        ("128", lambda: learner.learn(frames[:, :64], "a")),
        ("uint8", lambda: learner.learn(frames.astype(np.float32), "a")),
        ("uint8", lambda: learner.predict(np.full((128, 128, 3), np.nan))),
        ("diverged", lambda: learner.learn_latents(good, "a", training=Training(lr=1e30))),
        ("an iterator", lambda: learner.learn(None, "a")),  # type: ignore[arg-type]
        ("one frame", lambda: learner.learn([frames, frames], "a")),
        ("rows that differ", lambda: learner.predict_latents([[1, 2], [3]])),  # type: ignore[arg-type]
        ("Expected a label", lambda: learner.learn_latents(good, np.array("a"))),  # type: ignore[arg-type]
        ("Expected a label", lambda: learner.learn_latents(good, None)),  # type: ignore[arg-type]
        ("known label", lambda: learner.forget("nobody")),
        ("known label", lambda: learner.rename("nobody", "b")),
    ]
    for message, call in wrong:
        with pytest.raises(InputError, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)
        assert fingerprint(learner) == before


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
    assert newest_state(tmp_path).meta["labels"][:2] == ["kept", None]


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


def test_weights_that_burst_in_the_last_step(open_learner: Callable[..., Learner]) -> None:
    learner = open_learner()
    before = fingerprint(learner)
    with pytest.raises(InputError, match="diverged"):
        learner.learn_latents(latents_of(0), "a", training=Training(lr=1e38, epochs=1))
    assert fingerprint(learner) == before


def test_a_memory_update_that_is_not_committed_is_taken_back(
    open_learner: Callable[..., Learner], monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = open_learner(replay_size=30)
    learner.learn_latents(latents_of(0), "a", training=TRAINING)
    before = fingerprint(learner)
    monkeypatch.setattr(learner, "_commit", lambda **_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        learner.learn_latents(latents_of(1), "b", training=TRAINING)
    assert fingerprint(learner) == before


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


def test_a_single_frame_is_a_session(open_learner: Callable[..., Learner]) -> None:
    report = open_learner().learn(frames_of(0)[0], "a", training=TRAINING)
    assert report.frames == 1


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
    state = newest_state(tmp_path)
    other = checkpoint_module.State(state.arrays, {**state.meta, "bundle": "x"})
    checkpoint_module.write_state(tmp_path / "state-00000009.npz", other)
    with pytest.raises(StateError, match="another bundle"):
        open_learner(tmp_path)
    # And the lock is let go.
    checkpoint_module.Checkpoint(tmp_path).close()


def test_a_state_keeps_its_memory_options(
    open_learner: Callable[..., Learner], demo: Path, tmp_path: Path
) -> None:
    open_learner(tmp_path, replay_size=7, policy="balanced").close()
    with Learner.open(demo, tmp_path) as learner:
        assert (learner.memory.capacity, learner.memory.policy) == (7, "balanced")
    with Learner.open(demo, tmp_path, replay_size=9) as learner:
        assert (learner.memory.capacity, learner.memory.policy) == (9, "balanced")


def test_a_memory_that_is_too_small_for_the_state(
    open_learner: Callable[..., Learner], tmp_path: Path
) -> None:
    learner = open_learner(tmp_path)
    learner.learn_latents(latents_of(0), "a", training=TRAINING)
    learner.close()
    with pytest.raises(InputError, match="at least the 45 patterns"):
        open_learner(tmp_path, replay_size=10)


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
