"""A learner with a closed-form head: sessions in any order, states, unknown things."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from closed_form_bundles import FEATURES, SIZE, STRATEGIES, cloud
from lda_reference import LdaReference, far_apart
from learning import fingerprint
from lrtflite import Bundle, Learner
from lrtflite.answers.prediction import UNKNOWN
from lrtflite.bundle.feeding import SESSION
from lrtflite.errors import InputError, LrtfliteError, SessionCancelled
from lrtflite.verification.verify import verify_bundle

NAMES = ("mug", "hat", "shoe", "ball", "pen")
# A rate so great that the softmax keeps scores that are some hundreds apart.
TEMPERATURE = 100.0
# Threshold that `convert` writes for heads that report familiarity.
UNKNOWN_BELOW = 0.46
Open = Callable[..., Learner]


def teach(learner: Learner, kind: int, latents: np.ndarray) -> None:
    training = learner.training.with_options(temperature=TEMPERATURE)
    report = learner.learn_latents(latents, NAMES[kind], training=training)
    assert report.loss is None
    assert report.accuracy is None


def scores(learner: Learner, latents: np.ndarray, kinds: Any) -> np.ndarray:
    """(n, kinds): scores of some of NAMES, up to what is common to all."""
    slots = [learner.labels.index(NAMES[kind]) for kind in kinds]
    # The state has what the scores were divided by.
    divisor = learner.snapshot().arrays["head/temperature"]
    return divisor * np.log(learner.probabilities(latents)[:, slots].astype(float))


PROBE = np.concatenate([cloud(kind, 8, seed=9) for kind in range(5)])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_bundle_passes_its_golden_vectors(
    closed_form_bundles: Path, strategy: str, runtime: str
) -> None:
    failed = [
        each
        for each in verify_bundle(closed_form_bundles / strategy, runtime=runtime)
        if not each.passed
    ]
    assert failed == []
    manifest = Bundle.open(closed_form_bundles / strategy).manifest
    assert (manifest.strategy, manifest.replay_layer) == (strategy, "conv5_6/sep")
    assert manifest.pooled
    assert not manifest.trains_trunk
    assert manifest.latent_shape == (FEATURES,)
    assert (manifest.feeding.gathers, manifest.feeding.replays) == (SESSION, False)
    assert set(manifest.rates) == {"temperature"}
    assert set(manifest.merging.values()) == {"sum", "sum by class", "solve"}


def test_sessions_in_any_order_against_numpy(opened: Open, runtime: str) -> None:
    sessions = [(kind, cloud(kind, 12, seed=day)) for day in range(3) for kind in range(5)]
    reference = LdaReference(5, FEATURES)
    for kind, latents in sessions:
        reference.gather(latents, np.repeat(kind, 12))
    expected = reference.scores(PROBE)
    for order in (range(15), range(14, -1, -1)):
        learner = opened(runtime=runtime)
        for number in order:
            teach(learner, *sessions[number])
        found = scores(learner, PROBE, range(5))
        assert far_apart(found, expected) < 1e-4
        np.testing.assert_array_equal(found.argmax(axis=1), expected.argmax(axis=1))
        assert learner.sessions == 15


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_class_taught_in_ten_sessions_equals_one(opened: Open, strategy: str) -> None:
    latents = cloud(0, 60)
    found = []
    for parts in (1, 10):
        learner = opened(strategy=strategy)
        teach(learner, 1, cloud(1))
        for part in np.split(latents, parts):
            teach(learner, 0, part)
        found.append(learner.answers(PROBE))
    one, ten = found
    assert one.familiarity is not None
    assert ten.familiarity is not None
    np.testing.assert_allclose(ten.probabilities, one.probabilities, atol=1e-4)
    np.testing.assert_allclose(ten.familiarity, one.familiarity, atol=1e-3)


@pytest.mark.parametrize("replay_size", [0, 20])
def test_a_memory_is_optional_and_changes_no_answer(opened: Open, replay_size: int) -> None:
    learner, other = opened(replay_size=replay_size), opened()
    for kind in range(3):
        teach(learner, kind, cloud(kind))
        teach(other, kind, cloud(kind))
    assert len(learner.memory) == replay_size
    np.testing.assert_array_equal(learner.probabilities(PROBE), other.probabilities(PROBE))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_state_is_reopened_and_undone_to_the_bit(
    opened: Open, strategy: str, tmp_path: Path
) -> None:
    learner = opened(tmp_path / "state", strategy=strategy)
    for kind in range(2):
        teach(learner, kind, cloud(kind))
    before = fingerprint(learner)
    teach(learner, 2, cloud(2))
    after, answers = fingerprint(learner), learner.probabilities(PROBE)
    learner.close()
    again = opened(tmp_path / "state", strategy=strategy)
    assert fingerprint(again) == after
    np.testing.assert_array_equal(again.probabilities(PROBE), answers)
    again.undo()
    assert fingerprint(again) == before
    # The same session again, after the undo.
    teach(again, 2, cloud(2))
    np.testing.assert_array_equal(again.probabilities(PROBE), answers)


def test_a_session_stopped_in_the_middle_leaves_no_sums(opened: Open) -> None:
    learner = opened()
    teach(learner, 0, cloud(0))
    before, stop = fingerprint(learner), threading.Event()
    told = []

    def on_progress(progress: Any) -> None:
        told.append(progress)
        stop.set()

    with pytest.raises(SessionCancelled):
        learner.learn_latents(cloud(1, 200), "hat", on_progress=on_progress, cancel=stop)
    assert told
    assert fingerprint(learner) == before
    # Sums of the session that was stopped are not in the next one.
    teach(learner, 1, cloud(1))
    other = opened()
    for kind in range(2):
        teach(other, kind, cloud(kind))
    np.testing.assert_array_equal(learner.probabilities(PROBE), other.probabilities(PROBE))


def test_forget_keeps_the_others_and_a_class_is_taught_again(opened: Open) -> None:
    learner, reference = opened(), LdaReference(5, FEATURES)
    for kind in range(4):
        teach(learner, kind, cloud(kind))
        reference.gather(cloud(kind), np.repeat(kind, 20))
    others = [0, 1, 3]
    before = scores(learner, PROBE, others)
    learner.forget("shoe")
    reference.forget(2)
    assert set(learner.learned) == {"mug", "hat", "ball"}
    assert far_apart(scores(learner, PROBE, others), before) < 1e-5
    assert far_apart(before, reference.scores(PROBE)) < 1e-4
    teach(learner, 2, cloud(2, seed=5))
    reference.gather(cloud(2, seed=5), np.repeat(2, 20))
    assert set(learner.learned) == set(NAMES[:4])
    assert far_apart(scores(learner, PROBE, range(4)), reference.scores(PROBE)) < 1e-4


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_frames_all_alike_are_learned(opened: Open, strategy: str) -> None:
    learner = opened(strategy=strategy)
    pictures = np.random.default_rng(0).integers(0, 256, (2, SIZE, SIZE, 3)).astype(np.uint8)
    for name, picture in zip(NAMES, pictures):
        learner.learn(np.repeat(picture[np.newaxis], 10, axis=0), name)
        assert np.isfinite(learner.answers(cloud(0)).probabilities).all()
    assert [found[0].label for found in learner.predict(pictures)] == ["mug", "hat"]
    for found in learner.predict(pictures):
        assert 0 <= (found[0].familiarity or -1) <= 1


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_things_never_taught_are_unknown(opened: Open, strategy: str, tmp_path: Path) -> None:
    learner = opened(tmp_path / "state", strategy=strategy)
    for kind in range(3):
        teach(learner, kind, cloud(kind, 40))
    own = np.concatenate([cloud(kind, 20, seed=3) for kind in range(3)])
    # Noise that has nothing in common with anything taught.
    strange = np.random.default_rng(4).exponential(1, (20, FEATURES)).clip(0, 6).astype("f")
    familiar, odd = (learner.answers(latents).familiarity for latents in (own, strange))
    assert familiar is not None
    assert odd is not None
    assert np.median(familiar) > 0.3
    assert familiar.min() > odd.max()
    assert all(found[0].label != UNKNOWN for found in learner.predict_latents(strange))
    learner.close()
    # The threshold of the bundle.
    assert learner.bundle.manifest.unknown == UNKNOWN_BELOW
    doubting = opened(tmp_path / "state", strategy=strategy, unknown=UNKNOWN_BELOW)
    answers = [found[0].label for found in doubting.predict_latents(own)]
    assert answers.count(UNKNOWN) <= 0.1 * len(own)
    assert {found[0].label for found in doubting.predict_latents(strange)} == {UNKNOWN}


def test_a_threshold_outside_0_to_1_is_refused(opened: Open) -> None:
    for threshold in (-0.1, 1.1, float("nan")):
        with pytest.raises(InputError, match="unknown"):
            opened(unknown=threshold)


def test_bad_latents_leave_the_sums_alone(opened: Open) -> None:
    learner = opened()
    teach(learner, 0, cloud(0))
    before = fingerprint(learner)
    bad = cloud(1)
    bad[3, 5] = np.nan
    with pytest.raises(LrtfliteError):
        learner.learn_latents(bad, "hat")
    assert fingerprint(learner) == before
