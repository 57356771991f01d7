"""Cumulative training, against the formulas of softmax regression and SGD in float64."""

from __future__ import annotations

import numpy as np
import pytest

from lrtflite.errors import InputError
from lrtflite.progress import Progress
from lrtflite.session.session import Session
from lrtflite_firmware_sim.rivals.cumulative import Cumulative
from lrtflite_firmware_sim.rivals.softmax import gradient, train

CLASSES, FEATURES = 5, 6
TRAINING = Cumulative.training(FEATURES)


def patterns(count: int, kinds: int, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    targets = rng.integers(0, kinds, count).astype(np.int32)
    centres = np.random.default_rng(99).exponential(1, (kinds, FEATURES))
    return np.abs(rng.normal(centres[targets], 0.3)).astype(np.float32), targets


def loss_of(weights: np.ndarray, latents: np.ndarray, targets: np.ndarray) -> float:
    scores = latents.astype(np.float64) @ weights
    return float(np.mean(np.log(np.exp(scores).sum(axis=1)) - scores[range(len(targets)), targets]))


def test_the_gradient_is_that_of_the_loss() -> None:
    latents, targets = patterns(7, 3)
    weights = np.random.default_rng(1).normal(size=(FEATURES, 3))
    found, losses, hits = gradient(weights.astype(np.float32), latents, targets)
    assert losses.mean() == pytest.approx(loss_of(weights, latents, targets), rel=1e-5)
    assert hits.tolist() == ((latents @ weights).argmax(axis=1) == targets).tolist()
    for row, column in np.ndindex(weights.shape):
        nudge = np.zeros_like(weights)
        nudge[row, column] = 1e-5
        up, down = (loss_of(weights + sign * nudge, latents, targets) for sign in (1, -1))
        assert found[row, column] == pytest.approx((up - down) / 2e-5, abs=1e-5)


def test_steps_by_hand() -> None:
    # One pattern of each of two classes in each mini-batch: both scores start equal.
    latents = np.array([[1, 0], [0, 2]], np.float32)
    given = TRAINING.with_options(lr=0.5, momentum=0.9, weight_decay=0.1, epochs=2, least_steps=1)
    weights, outcome = train(
        latents,
        np.array([0, 1], np.int32),
        given,
        classes=2,
        rng=np.random.default_rng(0),
        session=Session(None, None),
    )
    # Step 1: the gradient is half of x (1/2 - target); step 2 adds momentum and decay.
    first = np.array([[0.125, -0.125], [-0.25, 0.25]])
    p0 = 1 / (1 + np.exp(-0.25))  # scores 0.125 and -0.125 of latent 0
    p1 = 1 / (1 + np.exp(-1.0))  # scores -0.5 and 0.5 of latent 1
    slope = np.array([[(p0 - 1) / 2, (1 - p0) / 2], [1 - p1, p1 - 1]])
    second = first + 0.9 * first - 0.5 * (slope + 0.1 * first)
    np.testing.assert_allclose(weights, second, rtol=1e-5)
    assert outcome.steps == 2
    assert outcome.loss == pytest.approx((-np.log(p0) - np.log(p1)) / 2, rel=1e-5)
    assert outcome.accuracy == 1.0


def test_it_reaches_the_minimum() -> None:
    latents, targets = patterns(40, 3)
    decay = 0.05
    given = TRAINING.with_options(lr=0.3, weight_decay=decay, epochs=1500)
    session = Session(None, None)
    weights, _ = train(
        latents, targets, given, classes=3, rng=np.random.default_rng(0), session=session
    )
    slope, _, _ = gradient(weights, latents, targets)
    # The loss is strictly convex: only the minimum has this gradient.
    np.testing.assert_allclose(slope, -decay * weights, atol=1e-5)


def learn(rival: Cumulative, latents: np.ndarray, slots: np.ndarray, *, seed: int) -> Cumulative:
    return rival.learn(
        latents, slots, TRAINING, rng=np.random.default_rng(seed), session=Session(None, None)
    )[0]


def test_each_session_trains_from_zero_on_everything() -> None:
    first, second = patterns(200, 2, seed=1), patterns(90, 5, seed=2)
    start = Cumulative.start(classes=CLASSES, features=FEATURES, capacity=0)
    one_by_one = learn(learn(start, *first, seed=8), *second, seed=9)
    at_once = learn(start, *(np.concatenate([a, b]) for a, b in zip(first, second)), seed=9)
    np.testing.assert_array_equal(one_by_one.weights, at_once.weights)
    assert len(one_by_one) == one_by_one.capacity == 290
    assert one_by_one.nbytes == 290 * (4 * FEATURES + 4)
    latents, slots = patterns(100, 5, seed=3)
    assert (one_by_one.probabilities(latents).argmax(axis=1) == slots).mean() > 0.9


def test_probabilities_of_slots_that_have_not_learned() -> None:
    start = Cumulative.start(classes=CLASSES, features=FEATURES, capacity=0)
    latents, targets = patterns(20, 2)
    assert not start.probabilities(latents).any()
    # Slots 1 and 4 learn.
    rival = learn(start, latents, (3 * targets + 1).astype(np.int32), seed=0)
    found = rival.probabilities(latents)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)
    assert np.flatnonzero(found.any(axis=0)).tolist() == [1, 4]
    assert (found.argmax(axis=1) == 3 * targets + 1).mean() == 1


def test_epochs_steps_and_progress() -> None:
    latents, targets = patterns(300, 3)
    told: list[Progress] = []
    session = Session(told.append, None)
    given = TRAINING.with_options(epochs=10)
    _, outcome = train(
        latents, targets, given, classes=3, rng=np.random.default_rng(0), session=session
    )
    # Three mini-batches of up to 128 in each epoch.
    assert outcome.steps == 30 == len(session.timings["train"])
    assert [(each.phase, each.done, each.total) for each in told][-1] == ("train", 10, 10)
    # A few pictures run extra epochs.
    few = train(
        latents[:4], targets[:4], given, classes=3, rng=np.random.default_rng(0), session=session
    )
    assert few[1].steps == TRAINING.least_steps == 24


def test_most_steps_ends_the_training() -> None:
    latents, targets = patterns(300, 3)
    session = Session(None, None)
    given = TRAINING.with_options(epochs=10, least_steps=1, most_steps=7)
    _, outcome = train(
        latents, targets, given, classes=3, rng=np.random.default_rng(0), session=session
    )
    assert outcome.steps == 7 == len(session.timings["train"])


def test_the_rate_follows_the_number_of_features() -> None:
    assert Cumulative.training(1024).values["lr"] == pytest.approx(0.003)
    assert Cumulative.training(256).values["lr"] == pytest.approx(0.012)


@pytest.mark.parametrize("lr", [1e30, 3e38])
def test_training_that_diverges(lr: float) -> None:
    latents, targets = patterns(50, 3)
    with pytest.raises(InputError, match=r"Training diverged .* lower it"):
        train(
            latents,
            targets,
            TRAINING.with_options(lr=lr, weight_decay=1.0),
            classes=3,
            rng=np.random.default_rng(0),
            session=Session(None, None),
        )
