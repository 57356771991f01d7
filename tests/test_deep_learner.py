"""The learner of a bundle split below the last layer: trunk, moments, other latents."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import lrtflite.knowledge as knowledge_module
import numpy as np
import pytest

from fake_bundle import BATCH, NEW, SHAPE, SIZE, TRAINING, FakeModel, make_bundle
from learning import fingerprint
from lrtflite import Learner, Progress
from lrtflite.checkpoint import newest_state
from lrtflite.errors import InputError, SessionCancelled, StateError

Open = Callable[..., Learner]
# 1 - (1 - adapt_rate) ** epochs of TRAINING: two epochs at a sixteenth.
RATE = 0.12109375


@pytest.fixture
def open_deep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """`open_deep(state, layer, **changes of the manifest)`."""
    monkeypatch.setattr(knowledge_module, "Model", FakeModel)
    opened = []

    def make(
        state: Path | None = None, layer: str = "conv5_4/dw", /, seed: int = 0, **changes: Any
    ) -> Learner:
        folder = tmp_path / layer.replace("/", "-")
        if not folder.exists():
            make_bundle(folder, replay_layer=layer, **changes)
        opened.append(Learner.open(folder, state, seed=seed))
        return opened[-1]

    yield make
    for learner in opened:
        learner.close()


def frames(*values: int) -> np.ndarray:
    """(n, 4, 4, 3) uint8: a frame of one grey for each value."""
    return np.stack([np.full(SHAPE, value, np.uint8) for value in values])


def fake(model: Any) -> FakeModel:
    assert isinstance(model, FakeModel)
    return model


def mean_of(model: Any) -> float:
    return float(fake(model).state["mean"].item())


def test_one_class_and_nothing_to_replay_moves_the_last_layer_alone(open_deep: Open) -> None:
    learner = open_deep()
    learner.learn(frames(10, 20, 30), "a")
    fake(learner._known.training).calls.clear()
    report = learner.learn(frames(10, 20, 30), "a")  # nothing but the same class in memory
    steps = fake(learner._known.training).inputs_of("train")
    assert len(steps) == report.steps == 2
    for inputs in steps:
        assert (inputs["lr"], inputs["trunk_lr"], inputs["moment_rate"]) == (0.5, 0, 0)
    saved = learner._known.serving.run("save")
    assert not saved["scale"].any()
    assert not saved["moment"].any()
    assert saved["cw"].any()
    assert not fake(learner._known.adapting).inputs_of("adapt")
    assert "adapt" not in report.timings


def test_several_classes_train_the_trunk_without_a_memory(open_deep: Open) -> None:
    learner = open_deep()
    learner.learn(frames(10, 20), ["a", "b"])
    for inputs in fake(learner._known.training).inputs_of("train"):
        assert (inputs["trunk_lr"], inputs["moment_rate"]) == (0.25, 0.125)


def test_with_something_to_replay_the_trunk_trains_too(open_deep: Open) -> None:
    learner = open_deep()
    learner.learn(frames(10, 20, 30), "a")
    fake(learner._known.training).calls.clear()
    report = learner.learn(frames(40, 50, 60, 70), "b")
    # Four new patterns, three in a mini-batch, two epochs.
    assert report.steps == 4
    for inputs in fake(learner._known.training).inputs_of("train"):
        assert (inputs["trunk_lr"], inputs["moment_rate"]) == (0.25, 0.125)
        assert inputs["latents"].shape == (BATCH, *SHAPE)
        assert inputs["targets"][:NEW, 1].all()
        assert inputs["targets"][NEW:, 0].all()
    assert learner._known.serving.run("save")["scale"] == 4 * 0.25
    learner.learn(frames(1), "b", training=replace(TRAINING, trunk_lr=2.0, epochs=1))
    assert learner._known.serving.run("save")["scale"] == 4 * 0.25 + 2


def test_a_short_session_takes_its_share_and_enough_steps(open_deep: Open) -> None:
    learner = open_deep()
    learner.learn(frames(10, 20, 30, 40, 50, 60, 70), "a")
    fake(learner._known.training).calls.clear()
    report = learner.learn(frames(80), "b", training=replace(TRAINING, least_steps=9))
    steps = fake(learner._known.training).inputs_of("train")
    # One of eight patterns has 6 / 8 of a place, and gets one; two epochs of it are two steps.
    assert len(steps) == report.steps == 9
    for inputs in steps:
        assert inputs["targets"].sum(axis=0).tolist() == [BATCH - 1, 1, 0, 0, 0]


def test_moments_follow_the_frames_in_full_groups(open_deep: Open) -> None:
    learner = open_deep()
    learner.learn(frames(7), "a")
    heard: list[Progress] = []
    report = learner.learn(iter(frames(10, 20, 30, 40, 50)), "b", on_progress=heard.append)
    groups = fake(learner._known.adapting).inputs_of("adapt")
    # In the order they came; the last group goes round to the first frame.
    assert [group["frames"][:, 0, 0, 0].tolist() for group in groups] == [
        [10, 20, 30],
        [40, 50, 10],
    ]
    assert [group["rate"] for group in groups] == [RATE, RATE]
    first = RATE * 20
    assert mean_of(learner._known.features) == pytest.approx(first + RATE * (100 / 3 - first))
    assert len(report.timings["adapt"]) == 2
    assert [(p.done, p.total) for p in heard if p.phase == "adapt"] == [(3, 5), (5, 5)]


def test_a_single_frame_fills_its_group(open_deep: Open) -> None:
    learner = open_deep()
    for value, label in ((7, "a"), (8, "b")):
        learner.learn(frames(value), label)
    [group] = fake(learner._known.adapting).inputs_of("adapt")
    np.testing.assert_array_equal(group["frames"], frames(8, 8, 8))


def test_a_session_is_extracted_with_the_moments_from_before_it(open_deep: Open) -> None:
    learner = open_deep()
    learner.learn(frames(10), "a")
    learner.learn(frames(100), "b")
    assert sorted(learner.memory.latents[:, 0, 0, 0]) == [10, 100]
    mean = mean_of(learner._known.features)
    assert mean == pytest.approx(RATE * 100)
    assert learner.extract(frames(100))[0, 0, 0, 0] == pytest.approx(100 - mean)


def test_predict_answers_from_committed_moments_while_they_move(open_deep: Open) -> None:
    learner = open_deep()
    learner.learn(frames(10, 20), "a")
    before, seen = learner.extract(frames(10)), []

    def look(progress: Progress) -> None:
        if progress.phase == "adapt":
            seen.append(np.array_equal(learner.extract(frames(10)), before))

    learner.learn(frames(200, 210, 220, 230), "b", on_progress=look)
    assert seen == [True, True]
    assert not np.array_equal(learner.extract(frames(10)), before)


def test_latents_alone_move_no_moments(open_deep: Open) -> None:
    learner = open_deep()
    learner.learn(frames(10, 20, 30), "a")
    latents = learner.extract(frames(40, 50))
    report = learner.learn_latents(latents, "b")
    assert report.session == 2
    assert not fake(learner._known.adapting).inputs_of("adapt")
    assert learner._known.serving.run("save")["scale"] > 0


def test_without_adapt_there_is_one_feature_model_and_no_moments(open_deep: Open) -> None:
    learner = open_deep(adapt_moments=False)
    assert learner._known.adapting is learner._known.features
    for value in (10, 20):
        report = learner.learn(frames(value), "a")
    assert "adapt" not in report.timings
    assert {name for name, _ in fake(learner._known.features).calls} == {"extract"}
    assert not any(name.startswith("features/") for name in learner._known.state().arrays)


def test_trunk_and_moments_are_in_the_state(open_deep: Open, tmp_path: Path) -> None:
    learner = open_deep(tmp_path / "state")
    for value in (10, 20, 30):
        learner.learn(frames(value, value + 5), f"{value}")
    arrays = newest_state(tmp_path / "state").arrays
    assert arrays["features/mean"] == mean_of(learner._known.features) > 0
    assert arrays["head/scale"] == 2 * TRAINING.epochs * 0.25
    before = fingerprint(learner)
    learner.close()
    opened = open_deep(tmp_path / "state")
    assert fingerprint(opened) == before
    # Both of each pair: the next session is that of a learner which was never closed.
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
    mean = mean_of(learner._known.features)
    assert mean > 0

    def stop(progress: Progress) -> None:
        if progress.phase == phase:
            cancel.set()

    with pytest.raises(SessionCancelled, match=phase):
        learner.learn(frames(*range(200, 208)), "b", on_progress=stop, cancel=cancel)
    assert fingerprint(learner) == before
    assert mean_of(learner._known.adapting) == mean_of(learner._known.features) == mean
    assert (
        learner._known.training.run("save")["scale"] == learner._known.serving.run("save")["scale"]
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
            assert mean_of(learner._known.adapting) == mean_of(learner._known.features)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", full)
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
    assert mean_of(learner._known.adapting) == mean_of(learner._known.features)


def test_an_interrupt_after_the_disk_has_it_keeps_what_the_disk_has(
    open_deep: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = open_deep(tmp_path / "state")
    learner.learn(frames(10, 20), "a")
    real, times = knowledge_module.restore_models, []

    def interrupted(*args: Any) -> None:
        times.append(1)
        if len(times) == 1:
            raise KeyboardInterrupt
        real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(knowledge_module, "restore_models", interrupted)
        with pytest.raises(KeyboardInterrupt):
            learner.learn(frames(30, 40), "b")
    assert learner.sessions == 2
    before = fingerprint(learner)
    learner.close()
    assert fingerprint(open_deep(tmp_path / "state")) == before


def test_frames_as_latents(open_deep: Open, tmp_path: Path) -> None:
    """At `images` nothing is extracted: latents are uint8 throughout, on disk too."""
    options = {"latent_dtype": "uint8", "adapt_moments": False}
    learner = open_deep(tmp_path / "state", "images", **options)
    learner.learn(frames(10, 255), "a")
    learner.learn(frames(128), "b")
    assert learner.memory.latents.dtype == np.uint8
    assert learner.memory.nbytes == 3 * (SIZE * SIZE * 3 + 4)
    assert learner.extract(frames(9)).dtype == np.uint8
    assert newest_state(tmp_path / "state").arrays["memory/latents"].dtype == np.uint8
    learner.learn_latents(frames(3, 4), "a")
    assert learner.probabilities(frames(3)).shape == (1, 5)
    with pytest.raises(InputError, match=r"\(n, 4, 4, 3\) of uint8 .*got .* of float32"):
        learner.learn_latents(frames(3).astype(np.float32), "a")
    before = fingerprint(learner)
    learner.close()
    assert fingerprint(open_deep(tmp_path / "state", "images")) == before


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
    assert "(conv5_6/dw), got one of another bundle (conv5_4/dw)" in str(caught.value)
    assert {path.name: path.read_bytes() for path in state.iterdir()} == before
    # And it is free for its own bundle.
    assert open_deep(state).sessions == 2


def test_a_trunk_that_bursts_in_the_last_step_is_refused(open_deep: Open) -> None:
    learner = open_deep()
    learner.learn(frames(10), "a")
    before = fingerprint(learner)
    # float32 ends at 3.4e38: two steps of this are finite no more, and no loss has seen it.
    burst = replace(TRAINING, trunk_lr=3e38)
    with pytest.raises(InputError, match=r"infinity in head/scale.*at lr 0.5 and trunk_lr 3e\+38"):
        learner.learn(frames(10), "b", training=burst)
    assert fingerprint(learner) == before
