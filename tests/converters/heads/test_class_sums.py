"""Sums over patterns: exact for many, the same over any split, and what is familiar by them."""

from __future__ import annotations

from functools import cache
from math import sqrt

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from closed_form_head import Clouds, forget, gather, make_head, saved, scores, teach
from familiarity_reference import places
from lda_reference import LdaReference, differences, far_apart, transformed
from lrtflite.contract.signatures import ZERO
from lrtflite_converters.heads.class_sums import transform
from lrtflite_converters.heads.head import Head

SUMS = ("class_sums", "class_counts", "squares", "pattern_count")


def test_transform_by_hand() -> None:
    found = transform(tf.constant([[9.0, 16, 0, 0], [-9, 16, 0, 0], [0, 0, 0, 0]]))
    # Roots 3 and 4, of length 5; a latent of zeros has no direction.
    expected = np.array([[0.6, 0.8, 0, 0], [-0.6, 0.8, 0, 0], [0, 0, 0, 0]])
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    small = transform(tf.constant([[9e-10, 16e-10]]))
    np.testing.assert_allclose(small, [[0.6, 0.8]], rtol=1e-5)


@pytest.mark.parametrize("kind", ["lda", "ncm"])
def test_sums_by_hand(kind: str) -> None:
    head = make_head(kind, 3, 2, batch_size=4)
    gather(head, np.array([[9, 16], [16, 9], [1, 0]], "f"), np.array([0, 0, 2]))
    state = saved(head)
    sums = np.array([[1.4, 1.4], [0, 0], [1, 0]])
    np.testing.assert_allclose(state["class_sums"], sums, rtol=1e-6)
    np.testing.assert_array_equal(state["class_counts"], [2, 0, 1])
    np.testing.assert_allclose(state["squares"], [0.36 + 0.64 + 1, 0.64 + 0.36], rtol=1e-6)
    np.testing.assert_array_equal(state["pattern_count"], [3])
    if kind == "lda":
        np.testing.assert_allclose(state["scatter"], [[2, 0.96], [0.96, 1]], rtol=1e-6)
    forget(head, 0)
    state = saved(head)
    # 1.4 * 1.4 / 2 is the part of the mean.
    np.testing.assert_allclose(state["squares"], [2 - 0.98, 1 - 0.98], rtol=1e-5)
    np.testing.assert_array_equal(state["pattern_count"], [3])
    if kind == "lda":
        expected = [[2 - 0.98, 0.96 - 0.98], [0.96 - 0.98, 1 - 0.98]]
        np.testing.assert_allclose(state["scatter"], expected, atol=1e-6)


@pytest.mark.parametrize("kind", ["lda", "ncm"])
def test_empty_places_count_nothing(kind: str) -> None:
    rng = np.random.default_rng(0)
    latents, targets = rng.exponential(1, (8, 6)).astype("f"), np.zeros((8, 3), "f")
    head = make_head(kind, 3, 6, batch_size=8)
    # Places are empty by their targets: whatever stands there.
    assert head.run("gather", latents=latents, targets=targets)["patterns"] == [0]
    assert all((value == 0).all() for name, value in saved(head).items() if name != "temperature")
    targets[[1, 4], [0, 2]] = 1
    assert head.run("gather", latents=latents, targets=targets)["patterns"] == [2]
    other = make_head(kind, 3, 6, batch_size=8)
    gather(other, latents[[1, 4]], np.array([0, 2]))
    for name, value in saved(other).items():
        np.testing.assert_allclose(saved(head)[name], value, rtol=1e-6, err_msg=name)


def test_a_hundred_thousand_patterns_do_not_drift() -> None:
    features, slots, sessions = 16, 5, 10
    clouds = Clouds(slots, features, seed=1)
    head, reference = make_head("lda", slots, features), LdaReference(slots, features)
    for _ in range(sessions):
        latents, taught = clouds.of_each(100_000 // sessions // slots)
        order = clouds.rng.permutation(len(latents))
        teach(head, latents[order], taught[order])
        z = transformed(latents)
        reference.scatter += z.T @ z
        reference.sums += np.eye(slots)[taught].T @ z
        reference.counts += np.bincount(taught)
        reference.patterns += len(z)
    state = saved(head)
    assert state["pattern_count"].item() == 100_000
    np.testing.assert_array_equal(state["class_counts"], reference.counts)
    for name, expected in (
        ("scatter", reference.scatter),
        ("class_sums", reference.sums),
        ("squares", np.diag(reference.scatter)),
    ):
        # A sum of 3,000 mini-batches in float32 is off by 1e-6 of itself.
        np.testing.assert_allclose(state[name], expected, rtol=1e-5, err_msg=name)
    probe, _ = clouds.of_each(50)
    found, expected = scores(head, probe, range(slots)), reference.scores(probe)
    assert far_apart(found, expected) < 1e-3
    np.testing.assert_array_equal(found.argmax(axis=1), expected.argmax(axis=1))


@cache
def device(kind: str) -> Head:
    return make_head(kind, 3, 5, batch_size=4)


def gathered(kind: str, latents: np.ndarray, slots: np.ndarray) -> dict[str, np.ndarray]:
    """The state of a new device that saw these patterns."""
    head = device(kind)
    head.run("restore", **{name: np.zeros_like(value) for name, value in saved(head).items()})
    teach(head, latents, slots)
    return saved(head)


@pytest.mark.parametrize("kind", ["lda", "ncm"])
@given(
    holders=st.lists(st.integers(0, 3), min_size=1, max_size=24),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=40)
def test_any_split_over_devices_adds_up_to_the_same(
    kind: str, holders: list[int], seed: int
) -> None:
    rng, count = np.random.default_rng(seed), len(holders)
    latents = rng.normal(0, 1, (count, 5)).astype("f")
    slots = rng.integers(0, 3, count)
    whole = gathered(kind, latents, slots)
    mine = [np.flatnonzero(np.array(holders) == each) for each in range(4)]
    states = [gathered(kind, latents[rows], slots[rows]) for rows in mine]
    rules = device(kind).merging
    merged = {
        name: np.sum([state[name] for state in states], axis=0)
        if rule != "solve"
        else np.zeros_like(whole[name])
        for name, rule in rules.items()
    }
    for name, rule in rules.items():
        if rule == "sum":
            np.testing.assert_allclose(
                merged[name], whole[name], rtol=1e-5, atol=1e-6 * count, err_msg=name
            )
    # What is not a sum is computed again from the sums, without a pattern.
    known = np.unique(slots)
    device(kind).run("restore", **merged)
    teach(device(kind), np.empty((0, 5), "f"), np.empty(0, int))
    found = differences(scores(device(kind), latents, known))
    device(kind).run("restore", **whole)
    expected = differences(scores(device(kind), latents, known))
    # Few patterns of five features: classes may have almost no variance, and so large weights.
    np.testing.assert_allclose(found, expected, atol=1e-3 * max(1, np.ptp(expected)))


@pytest.mark.parametrize("kind", ["lda", "ncm"])
def test_familiarity_against_numpy(kind: str) -> None:
    clouds = Clouds(6, 64, seed=2)
    taught = [clouds.draw(slot, 12 + slot) for slot in range(4)]
    head = make_head(kind, 5, 64)
    for slot, latents in enumerate(taught):
        teach(head, latents, slot)
    probe, kinds = clouds.of_each(25)
    found = head.run("infer", latents=probe)
    familiarity, answered = found["familiarity"], found["probabilities"].argmax(axis=1)
    assert familiarity.shape == (150,)
    # Along the weights where the head has them, else along the line to the class.
    weights = head.run("save", zero=ZERO)["weights"].astype(float) if kind == "lda" else None
    expected = places(dict(enumerate(taught)), probe, answered, weights)
    np.testing.assert_allclose(familiarity, expected, atol=2e-4)
    assert familiarity.min() >= 0
    assert familiarity.max() <= 1
    # Classes 4 and 5 were never taught.
    own, other = familiarity[kinds < 4], familiarity[kinds >= 4]
    assert np.median(own) > np.median(other) + 0.1
    # Area under the ROC curve.
    assert (own[:, np.newaxis] > other).mean() > 0.9


def test_a_leave_one_out_cosine_is_that_of_the_patterns() -> None:
    # The mean length of the others stands for each length: the mean cosine is off by little.
    z = transformed(Clouds(1, 64, seed=3).draw(0, 20))
    others = z.sum(axis=0) - z
    exact = ((z * others).sum(axis=1) / np.linalg.norm(others, axis=1)).mean()
    short = (z * others).sum(axis=1).mean() / sqrt((others**2).sum(axis=1).mean())
    assert short == pytest.approx(exact, abs=1e-3)


def test_sums_of_both_heads_are_the_same() -> None:
    latents, slots = Clouds(3, 8, seed=4).of_each(10)
    states = []
    for kind in ("lda", "ncm"):
        head = make_head(kind, 3, 8)
        teach(head, latents, slots)
        states.append(saved(head))
    for name in SUMS:
        np.testing.assert_array_equal(states[0][name], states[1][name])
