"""A learner of a bundle split below the last layer: trunk, moments, latents of other shapes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fake_bundle import BATCH, NEW, SHAPE, SIZE, TRAINING, fake, frames, mean_of
from learning import fingerprint
from lrtflite import Learner, Progress
from lrtflite.contract.signatures import ZERO
from lrtflite.errors import InputError
from lrtflite.state.folder import read_state

Open = Callable[..., Learner]
# 1 - (1 - adapt_rate) ** epochs of TRAINING: two epochs at a sixteenth.
RATE = 0.12109375


def test_one_class_and_nothing_to_replay_moves_the_last_layer_alone(open_deep: Open) -> None:
    learner = open_deep()
    learner.learn(frames(10, 20, 30), "a")
    fake(learner.committed.working).calls.clear()
    report = learner.learn(frames(10, 20, 30), "a")  # nothing but the same class in memory
    working = fake(learner.committed.working)
    steps = working.inputs_of("train_last")
    assert len(steps) == report.steps == 2
    assert not working.inputs_of("train")
    for inputs in steps:
        assert inputs["lr"] == 0.5
        assert not {"trunk_lr", "moment_rate"} & set(inputs)
    saved = learner.committed.serving.run("save", zero=ZERO)
    assert not saved["scale"].any()
    assert not saved["moment"].any()
    assert saved["cw"].any()
    assert not fake(learner.committed.adapting).inputs_of("adapt")
    assert "adapt" not in report.timings


def test_several_classes_train_the_trunk_without_a_memory(open_deep: Open) -> None:
    learner = open_deep()
    learner.learn(frames(10, 20), ["a", "b"])
    for inputs in fake(learner.committed.working).inputs_of("train"):
        assert (inputs["trunk_lr"], inputs["moment_rate"]) == (0.25, 0.125)


def test_with_something_to_replay_the_trunk_trains_too(open_deep: Open) -> None:
    learner = open_deep()
    learner.learn(frames(10, 20, 30), "a")
    fake(learner.committed.working).calls.clear()
    report = learner.learn(frames(40, 50, 60, 70), "b")
    # Four new patterns, three in a mini-batch, two epochs.
    assert report.steps == 4
    for inputs in fake(learner.committed.working).inputs_of("train"):
        assert (inputs["trunk_lr"], inputs["moment_rate"]) == (0.25, 0.125)
        assert inputs["latents"].shape == (BATCH, *SHAPE)
        assert inputs["targets"][:NEW, 1].all()
        assert inputs["targets"][NEW:, 0].all()
    assert learner.committed.serving.run("save", zero=ZERO)["scale"] == 4 * 0.25
    learner.learn(frames(1), "b", training=TRAINING.with_options(trunk_lr=2.0, epochs=1))
    assert learner.committed.serving.run("save", zero=ZERO)["scale"] == 4 * 0.25 + 2


def test_a_short_session_takes_its_share_and_enough_steps(open_deep: Open) -> None:
    learner = open_deep()
    learner.learn(frames(10, 20, 30, 40, 50, 60, 70), "a")
    fake(learner.committed.working).calls.clear()
    report = learner.learn(frames(80), "b", training=TRAINING.with_options(least_steps=9))
    steps = fake(learner.committed.working).inputs_of("train")
    # One of eight patterns is due 6 / 8 of a place and gets one. Two epochs are two steps.
    assert len(steps) == report.steps == 9
    for inputs in steps:
        assert inputs["targets"].sum(axis=0).tolist() == [BATCH - 1, 1, 0, 0, 0]


def test_moments_follow_the_frames_in_full_groups(open_deep: Open) -> None:
    learner = open_deep()
    learner.learn(frames(7), "a")
    heard: list[Progress] = []
    report = learner.learn(iter(frames(10, 20, 30, 40, 50)), "b", on_progress=heard.append)
    groups = fake(learner.committed.adapting).inputs_of("adapt")
    # Frames in order of arrival; the first frame fills up the last group.
    assert [group["frames"][:, 0, 0, 0].tolist() for group in groups] == [
        [10, 20, 30],
        [40, 50, 10],
    ]
    assert [(group["adapt_rate"], group["epochs"]) for group in groups] == [(0.0625, 2)] * 2
    first = RATE * 20
    assert mean_of(learner.committed.features) == pytest.approx(first + RATE * (100 / 3 - first))
    assert len(report.timings["adapt"]) == 2
    assert [(p.done, p.total) for p in heard if p.phase == "adapt"] == [(3, 5), (5, 5)]


def test_a_single_frame_fills_its_group(open_deep: Open) -> None:
    learner = open_deep()
    for value, label in ((7, "a"), (8, "b")):
        learner.learn(frames(value), label)
    [group] = fake(learner.committed.adapting).inputs_of("adapt")
    np.testing.assert_array_equal(group["frames"], frames(8, 8, 8))


def test_a_session_is_extracted_with_the_moments_from_before_it(open_deep: Open) -> None:
    learner = open_deep()
    learner.learn(frames(10), "a")
    learner.learn(frames(100), "b")
    assert sorted(learner.memory.codes[:, 0, 0, 0]) == [10, 100]
    mean = mean_of(learner.committed.features)
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
    assert not fake(learner.committed.adapting).inputs_of("adapt")
    assert learner.committed.serving.run("save", zero=ZERO)["scale"] > 0


def test_without_adapt_there_is_one_feature_model_and_no_moments(open_deep: Open) -> None:
    learner = open_deep(adapt_moments=False)
    assert learner.committed.adapting is learner.committed.features
    for value in (10, 20):
        report = learner.learn(frames(value), "a")
    assert "adapt" not in report.timings
    assert {name for name, _ in fake(learner.committed.features).calls} == {"extract"}
    assert not any(name.startswith("features/") for name in learner.committed.state().arrays)


def test_frames_as_latents(open_deep: Open, tmp_path: Path) -> None:
    """At `images` nothing is extracted: latents are uint8 throughout, on disk too."""
    options = {"latent_dtype": "uint8", "train_dtype": "uint8", "adapt_moments": False}
    learner = open_deep(tmp_path / "state", "images", **options)
    learner.learn(frames(10, 255), "a")
    learner.learn(frames(128), "b")
    assert learner.memory.codes.dtype == np.uint8
    assert learner.memory.nbytes == 3 * (SIZE * SIZE * 3 + 8)
    assert learner.extract(frames(9)).dtype == np.uint8
    assert read_state(tmp_path / "state").memory.rows.all().dtype == np.uint8
    learner.learn_latents(frames(3, 4), "a")
    assert learner.probabilities(frames(3)).shape == (1, 5)
    with pytest.raises(InputError, match=r"\(n, 4, 4, 3\) of uint8 .*got .* of float32"):
        learner.learn_latents(frames(3).astype(np.float32), "a")
    before = fingerprint(learner)
    learner.close()
    assert fingerprint(open_deep(tmp_path / "state", "images")) == before
