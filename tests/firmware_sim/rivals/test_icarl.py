"""iCaRL, against a re-derivation from its formulas and numbers worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from icarl_reference import Reference
from lrtflite.errors import InputError
from lrtflite.session.session import Session
from lrtflite_firmware_sim.rivals.icarl import ICaRL, fused

CLASSES, FEATURES = 6, 12


def taught(rival: ICaRL, latents: np.ndarray, slots: list[int]) -> ICaRL:
    found, outcome = rival.learn(
        latents.astype(np.float32),
        np.array(slots, np.int32),
        None,
        rng=np.random.default_rng(0),
        session=Session(None, None),
    )
    assert (outcome.steps, outcome.loss, outcome.accuracy) == (0, None, None)
    return found


def untaught(capacity: int, *, features: int = FEATURES) -> ICaRL:
    return ICaRL.start(classes=CLASSES, features=features, capacity=capacity)


def directions(*degrees: float) -> np.ndarray:
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def test_it_is_the_reference() -> None:
    rng = np.random.default_rng(4)
    centres = rng.exponential(1, (CLASSES, FEATURES))
    rival, reference = untaught(23), Reference(23)
    test = np.abs(rng.normal(np.repeat(centres, 20, axis=0), 0.7)).astype(np.float32)
    # Classes 3, 0 and 1 come again, in sessions of one class and of several.
    for slots in ([3] * 9, [0] * 5 + [4] * 8, [3] * 7, [1] * 2, [0] * 6 + [1] * 6 + [2] * 6):
        latents = np.abs(rng.normal(centres[slots], 0.7)).astype(np.float32)
        rival = taught(rival, latents, slots)
        reference.learn(latents, slots)
        assert rival.slots.tolist() == [label for label, _ in reference.virtual]
        for own, (_, kept) in zip(rival.virtual, reference.virtual):
            np.testing.assert_allclose(own.exemplars, kept, rtol=1e-5)
        answers = rival.probabilities(test).argmax(axis=1).tolist()
        assert answers == [reference.answer(latent) for latent in test]
    # 23 places for eight virtual classes: two exemplars each.
    assert [len(each.exemplars) for each in rival.virtual] == [2] * 8
    assert len(rival) == 16


def test_virtual_classes_are_fused_only_when_it_answers() -> None:
    # Class 0 comes from the right and later from above; class 1 is between the two.
    rival = taught(untaught(50, features=2), directions(-2, 2), [0, 0])
    rival = taught(rival, directions(43, 47), [1, 1])
    rival = taught(rival, directions(88, 92), [0, 0])
    assert rival.slots.tolist() == [0, 1, 0]
    # The mean of all of class 0 would be at 45 degrees.
    np.testing.assert_allclose(rival.means, directions(0, 45, 90), atol=1e-6)
    answers = rival.probabilities(directions(5, 20, 40, 50, 70, 85)).argmax(axis=1)
    assert answers.tolist() == [0, 0, 1, 1, 0, 0]


def test_fusing_takes_the_nearest_of_a_class() -> None:
    distances = np.array([[3.0, 1.0, 2.0], [0.5, 4.0, 0.25]], np.float32)
    found = fused(distances, np.array([2, 0, 2], np.int32), 4)
    np.testing.assert_array_equal(found, [[1, np.inf, 2, np.inf], [4, np.inf, 0.25, np.inf]])


def test_only_directions_count() -> None:
    rng = np.random.default_rng(5)
    latents = rng.exponential(1, (12, FEATURES)).astype(np.float32)
    lengths = rng.uniform(0.1, 10, (12, 1)).astype(np.float32)
    slots = [0] * 6 + [1] * 6
    test = rng.exponential(1, (30, FEATURES)).astype(np.float32)
    plain = taught(untaught(8), latents, slots)
    scaled = taught(untaught(8), latents * lengths, slots)
    np.testing.assert_allclose(plain.probabilities(test), scaled.probabilities(7 * test), rtol=1e-4)


def test_the_memory_shrinks_in_herding_order_and_stays_in_its_limit() -> None:
    rng = np.random.default_rng(6)
    rival = taught(untaught(10), rng.exponential(1, (30, FEATURES)), [0] * 30)
    assert (len(rival), rival.capacity) == (10, 10)
    first = rival.virtual[0].exemplars
    for session, share in enumerate((5, 3, 2, 2, 1), start=1):
        before = rival
        rival = taught(rival, rng.exponential(1, (30, FEATURES)), [session] * 30)
        np.testing.assert_array_equal(rival.virtual[0].exemplars, first[:share])
        assert len(rival) == share * (session + 1) <= 10
        # A float32 latent and an int32 slot for each exemplar.
        assert rival.nbytes == len(rival) * (4 * FEATURES + 4)
        assert len(before.virtual) == session  # a session returns another value
    with pytest.raises(InputError, match="11 virtual classes, got a replay size of 10"):
        taught(rival, rng.exponential(1, (5, FEATURES)), [0, 1, 2, 3, 4])


def test_a_class_with_fewer_patterns_than_its_share_keeps_all() -> None:
    rival = taught(untaught(100), np.eye(3, FEATURES), [0, 1, 1])
    assert [len(each.exemplars) for each in rival.virtual] == [1, 2]


def test_probabilities() -> None:
    latents = np.random.default_rng(7).exponential(1, (9, FEATURES)).astype(np.float32)
    assert not untaught(10).probabilities(latents).any()
    rival = taught(untaught(10), latents, [1, 4] * 4 + [1])
    found = rival.probabilities(latents)
    assert found.shape == (9, CLASSES)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)
    assert np.flatnonzero(found.any(axis=0)).tolist() == [1, 4]
    assert np.flatnonzero(rival.learned).tolist() == [1, 4]


def test_latents_of_zeros_are_no_nan() -> None:
    rival = taught(untaught(10), np.zeros((4, FEATURES)), [0, 0, 1, 1])
    assert np.isfinite(rival.probabilities(np.zeros((2, FEATURES), np.float32))).all()
