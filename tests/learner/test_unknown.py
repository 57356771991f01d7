"""An answer of unknown, on every installed runtime."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from fake_bundle import FAKES
from learning import TRAINING, latents_of
from lrtflite import Learner
from lrtflite.answers.prediction import NO_SLOT, UNKNOWN, Answers, top_predictions
from lrtflite.errors import InputError
from lrtflite.opening import open_committed

Open = Callable[..., Learner]


def taught(open_learner: Open, state: Path | None = None, **options: object) -> Learner:
    learner = open_learner(state, **options)
    for kind in range(4):
        learner.learn_latents(latents_of(kind), f"kind {kind}", training=TRAINING)
    return learner


def familiarity(learner: Learner, latents: np.ndarray) -> np.ndarray:
    found = learner.answers(latents).familiarity
    assert found is not None
    return found


def test_what_was_never_taught_is_unknown(open_learner: Open, runtime: str) -> None:
    learner = taught(open_learner, runtime=runtime, unknown=0.05)
    for kind in range(4):
        answers = learner.predict_latents(latents_of(kind, 100, seed=1), top=1)
        labels = [top[0].label for top in answers]
        # 5 % of what was taught is less familiar, and these are drawn from the same cloud.
        assert labels.count(f"kind {kind}") >= 85
    strange = [top for kind in range(10, 20) for top in learner.predict_latents(latents_of(kind))]
    assert {top[0].label for top in strange} == {UNKNOWN}
    first, second, *_ = strange[0]
    assert first.slot == NO_SLOT
    assert first.familiarity is not None
    assert first.familiarity < 0.05
    assert first.probability == pytest.approx(1 - first.familiarity)
    assert second.label in learner.learned


def test_all_answers_for_a_frame_add_up_to_one(open_learner: Open) -> None:
    learner = taught(open_learner, unknown=0.05)
    probe = np.concatenate([latents_of(kind, 5, seed=1) for kind in (0, 1, 12, 13)])
    plain = learner.probabilities(probe)
    refused = 0
    for row, answers in enumerate(learner.predict_latents(probe, top=9)):
        assert sum(answer.probability for answer in answers) == pytest.approx(1, abs=1e-5)
        share = 1.0
        if answers[0].label == UNKNOWN:
            refused += 1
            unknown, *answers = answers
            assert unknown.familiarity is not None
            share = unknown.familiarity
        for answer in answers:
            assert answer.probability == pytest.approx(share * plain[row, answer.slot], abs=1e-7)
        assert answers == sorted(answers, key=lambda answer: -answer.probability)
    assert 0 < refused < len(probe)


def test_the_share_of_unknown_by_hand() -> None:
    """0.9 unfamiliar: 0.9 for unknown; 3 to 1 of the other 0.1 for the classes."""
    answers = Answers(np.array([[0.75, 0.25, 0]], np.float32), np.array([0.1], np.float32))
    [found] = top_predictions(answers, ("cup", "hat", None), top=3, unknown=0.2)
    assert [(each.label, each.slot) for each in found] == [("unknown", -1), ("cup", 0), ("hat", 1)]
    assert [each.probability for each in found] == pytest.approx([0.9, 0.075, 0.025])
    [found] = top_predictions(answers, ("cup", "hat", None), top=3, unknown=0.05)
    assert [each.probability for each in found] == pytest.approx([0.75, 0.25])


def test_without_a_threshold_everything_gets_a_name(open_learner: Open) -> None:
    learner = taught(open_learner)
    for top in learner.predict_latents(latents_of(10)):
        assert UNKNOWN not in [answer.label for answer in top]
        assert top[0].familiarity is not None


def test_familiarity_outlives_the_learner(open_learner: Open, tmp_path: Path) -> None:
    state = tmp_path / "state"
    learner = taught(open_learner, state)
    probe = np.concatenate([latents_of(2, 5, seed=1), latents_of(10, 5)])
    before = familiarity(learner, probe)
    learner.close()
    np.testing.assert_array_equal(familiarity(open_learner(state), probe), before)


def test_a_forgotten_class_is_unknown(open_learner: Open) -> None:
    learner = taught(open_learner)
    assert familiarity(learner, latents_of(3, 20, seed=1)).mean() > 0.3
    learner.forget("kind 3")
    assert familiarity(learner, latents_of(3, 20, seed=1)).max() < 0.05
    learner.learn_latents(latents_of(3), "kind 3 again", training=TRAINING)
    assert familiarity(learner, latents_of(3, 20, seed=1)).mean() > 0.3


def test_familiarity_does_not_depend_on_the_order(open_learner: Open) -> None:
    probe = np.concatenate([latents_of(0, 10, seed=1), latents_of(1, 10, seed=1)])
    found = []
    for order in ((0, 1), (1, 0)):
        learner = open_learner()
        for kind in order:
            learner.learn_latents(latents_of(kind), slot=kind, training=TRAINING)
        found.append(familiarity(learner, probe))
    # float32 sums of 45 patterns in another order.
    np.testing.assert_allclose(found[0], found[1], atol=1e-4)


def test_one_frame_is_enough_to_answer(open_learner: Open) -> None:
    learner = open_learner(unknown=0.05)
    learner.learn_latents(latents_of(0, 1), "cup", training=TRAINING)
    [[answer, *_]] = learner.predict_latents(latents_of(0, 1, seed=1))
    assert answer.label == "cup"


def test_frames_that_are_all_alike(open_learner: Open) -> None:
    learner = open_learner(unknown=0.05)
    alike = np.repeat(latents_of(0, 1), 20, axis=0)
    learner.learn_latents(alike, "cup", training=TRAINING)
    assert learner.predict_latents(alike[:1])[0][0].label == "cup"
    assert learner.predict_latents(latents_of(10, 1))[0][0].label == UNKNOWN
    assert np.isfinite(familiarity(learner, alike)).all()


@pytest.mark.parametrize("threshold", [-0.1, 1.5, float("nan"), "0.05", True])
def test_thresholds_outside_0_to_1_are_refused(open_learner: Open, threshold: object) -> None:
    with pytest.raises(InputError, match="Expected unknown as a number from 0 to 1, got "):
        open_learner(unknown=threshold)


def test_heads_that_do_not_tell_are_refused(
    open_deep: Callable[..., Learner], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = open_deep(None).bundle
    monkeypatch.setattr("lrtflite.learner.open_committed", partial(open_committed, **FAKES))
    with pytest.raises(InputError, match=r"for unknown=0\.05, got the strategy 'steps'; convert"):
        Learner.open(bundle, tmp_path / "state", unknown=0.05)
    # The state folder is let go.
    Learner.open(bundle, tmp_path / "state").close()
