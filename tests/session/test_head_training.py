"""A session calls the signatures that a head has, in the order of the contract."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fake_bundle import BATCH, FEEDING, TRAINING, fake, frames
from lrtflite import Learner, Progress
from lrtflite.bundle.feeding import NOTHING, SESSION, SESSION_AND_MEMORY

Open = Callable[..., Learner]


def opened(open_deep: Open, strategy: str, gathers: str = NOTHING, **changes: Any) -> Learner:
    training = replace(TRAINING, feeding=replace(FEEDING, gathers=gathers))
    learner = open_deep(strategy=strategy, training=training, **changes)
    fake(learner.committed.working).calls.clear()  # those of opening
    return learner


def called(learner: Learner) -> list[str]:
    return [name for name, _ in fake(learner.committed.working).calls]


def test_a_head_that_only_gathers(open_deep: Open) -> None:
    learner = opened(open_deep, "gathering", SESSION)
    heard: list[Progress] = []
    report = learner.learn(frames(*range(8)), list("abababab"), on_progress=heard.append)
    # Eight patterns in mini-batches of six.
    assert called(learner) == ["begin", "gather", "gather", "consolidate", "save"]
    assert (report.loss, report.accuracy, report.steps) == (None, None, 0)
    assert learner.learned == ("a", "b")
    assert [(p.done, p.total) for p in heard if p.phase == "gather"] == [(1, 2), (2, 2)]
    assert len(report.timings["gather"]) == 2
    assert "train" not in report.timings
    first, second = fake(learner.committed.working).inputs_of("gather")
    assert first["targets"].sum() == BATCH
    assert second["targets"].sum(axis=1).tolist() == [1, 1, 0, 0, 0, 0]
    assert not second["latents"][2:].any()


def test_a_head_that_trains_and_then_gathers(open_deep: Open) -> None:
    learner = opened(open_deep, "steps and gathering", SESSION_AND_MEMORY, adapt_moments=False)
    learner.learn(frames(1, 2), ["a", "b"])
    fake(learner.committed.working).calls.clear()
    report = learner.learn(frames(3, 4, 5, 6), "c")
    # Three new patterns a mini-batch: two steps an epoch. Then four new and two stored, each once.
    assert called(learner) == ["begin", *["train"] * 4, "gather", "gather", "consolidate", "save"]
    assert (report.steps, report.loss, report.accuracy) == (4, 1.0, 0.5)
    gathered = fake(learner.committed.working).inputs_of("gather")
    seen = [
        float(latent[0, 0, 0])
        for inputs in gathered
        for latent, target in zip(inputs["latents"], inputs["targets"])
        if target.any()
    ]
    assert seen[:4] == [3, 4, 5, 6]
    assert sorted(seen[4:]) == [1, 2]


def test_a_head_that_could_gather_is_not_asked_without_a_feeding_that_says_so(
    open_deep: Open,
) -> None:
    learner = opened(open_deep, "steps and gathering", NOTHING)
    learner.learn(frames(1, 2), ["a", "b"])
    assert "gather" not in called(learner)


@pytest.mark.parametrize(
    ("strategy", "signature"), [("steps", "train_last"), ("one kind of step", "train")]
)
def test_a_trunk_that_rests(open_deep: Open, strategy: str, signature: str) -> None:
    learner = opened(open_deep, strategy)
    report = learner.learn(frames(1, 2, 3), "a")
    assert called(learner) == ["begin", signature, signature, "consolidate", "save"]
    assert not fake(learner.committed.adapting).inputs_of("adapt")
    assert "adapt" not in report.timings
    report = learner.learn(frames(4, 5, 6), "b")
    assert fake(learner.committed.working).inputs_of("train")
    assert len(fake(learner.committed.adapting).inputs_of("adapt")) == 1


def test_begin_and_consolidate_get_the_counts_of_session_and_memory(open_deep: Open) -> None:
    learner = opened(open_deep, "steps")
    learner.learn(frames(1, 2), "a")
    learner.learn(frames(3, 4, 5), ["b", "a", "b"])
    working = fake(learner.committed.working)
    for signature in ("begin", "consolidate"):
        counts = [inputs["counts"].tolist() for inputs in working.inputs_of(signature)]
        assert counts == [[2, 0, 0, 0, 0], [3, 2, 0, 0, 0]]
    np.testing.assert_array_equal(working.inputs_of("begin")[0]["head_start"], [1.0])
