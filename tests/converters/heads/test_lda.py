"""The closed-form head against float64 numpy, whatever the order, and where little was taught."""

from __future__ import annotations

import numpy as np
import pytest

from closed_form_head import Clouds, forget, gather, make_head, saved, scores, teach
from lda_reference import LdaReference, differences, far_apart, transformed
from lrtflite.contract.signatures import ZERO
from lrtflite_converters.heads.head import Head

# Largest difference of scores allowed, relative to their range: float32 and the residual at which
# a system counts as solved leave 1e-6 to 3e-5.
CLOSE = 1e-4
# The most that the state of a head may take at alpha 1.0 with 50 slots.
MAX_BYTES = 4.7e6


def infer(head: Head, latents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    found = head.run("infer", latents=latents)
    return found["probabilities"], found["familiarity"]


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize(("features", "count"), [(8, 40), (64, 15), (256, 7), (256, 70)])
def test_several_sessions_against_numpy(features: int, count: int, signed: bool) -> None:
    clouds = Clouds(6, features, seed=features, signed=signed)
    head, reference = make_head("lda", 8, features), LdaReference(8, features)
    probe, slots = clouds.of_each(10)
    # Two classes at a time, each of them twice.
    for pair in ((0, 1), (2, 3), (1, 2), (4, 5), (5, 4), (3, 0)):
        latents = np.concatenate([clouds.draw(kind, count) for kind in pair])
        taught = np.repeat(pair, count)
        teach(head, latents, taught)
        reference.gather(latents, taught)
        known = reference.known
        found, expected = scores(head, probe, known), reference.scores(probe)
        assert far_apart(found, expected) < CLOSE
        np.testing.assert_array_equal(found.argmax(axis=1), expected.argmax(axis=1))
    chances, _ = infer(head, probe)
    np.testing.assert_array_equal(chances[:, 6:], 0)
    np.testing.assert_allclose(chances.sum(axis=1), 1, rtol=1e-5)
    # An oracle that is wrong in the same way would show here; clouds of few features overlap.
    right = (scores(head, probe, range(6)).argmax(axis=1) == slots).mean()
    assert right > (0.6 if features == 8 else 0.9)


def test_the_sign_of_a_latent_counts() -> None:
    rng = np.random.default_rng(0)
    centre = rng.normal(0, 1, 16)
    latents = (np.repeat([centre, -centre], 10, axis=0) + rng.normal(0, 0.3, (20, 16))).astype("f")
    head = make_head("lda", 2, 16)
    teach(head, latents, np.repeat([0, 1], 10))
    np.testing.assert_array_equal(infer(head, latents)[0].argmax(axis=1), np.repeat([0, 1], 10))


@pytest.mark.parametrize("features", [32, 256])
def test_the_order_of_sessions_does_not_matter(features: int) -> None:
    clouds = Clouds(10, features, seed=1)
    sessions = [(clouds.draw(kind, 25), kind) for kind in list(range(10)) * 3]
    probe, _ = clouds.of_each(20)
    found = []
    for order in (range(30), range(29, -1, -1), np.random.default_rng(0).permutation(30)):
        head = make_head("lda", 10, features)
        for number in order:
            teach(head, *sessions[number])
        found.append(scores(head, probe, range(10)))
    for other in found[1:]:
        np.testing.assert_array_equal(other.argmax(axis=1), found[0].argmax(axis=1))
        assert far_apart(other, found[0]) < CLOSE


def test_ten_sessions_of_a_class_equal_one() -> None:
    clouds = Clouds(4, 64, seed=2)
    others, slots = clouds.of_each(20)
    latents, (probe, _) = clouds.draw(0, 100), clouds.of_each(20)
    at_once, in_parts = make_head("lda", 5, 64), make_head("lda", 5, 64)
    for head, parts in ((at_once, 1), (in_parts, 10)):
        teach(head, others[slots > 0], slots[slots > 0])
        for part in np.split(latents, parts):
            teach(head, part, 0)
    one, ten = (scores(head, probe, range(4)) for head in (at_once, in_parts))
    np.testing.assert_array_equal(ten.argmax(axis=1), one.argmax(axis=1))
    assert far_apart(ten, one) < CLOSE
    for name in ("scatter", "class_sums", "class_counts", "squares", "pattern_count"):
        expected = saved(at_once)[name]
        np.testing.assert_allclose(
            saved(in_parts)[name], expected, rtol=1e-5, atol=1e-6 * expected.max()
        )


def test_weights_follow_from_the_sums_alone() -> None:
    clouds = Clouds(5, 48, seed=3)
    head, probe = make_head("lda", 5, 48), clouds.of_each(10)[0]
    for kind in (3, 1, 4, 0, 2):
        teach(head, clouds.draw(kind, 12), kind)
    state = saved(head)
    assert head.merging == {
        **dict.fromkeys(("scatter", "squares", "pattern_count"), "sum"),
        **dict.fromkeys(("class_sums", "class_counts"), "sum by class"),
        **dict.fromkeys(("weights", "bias", "temperature"), "solve"),
    }
    sums = {n: v if head.merging[n] != "solve" else np.zeros_like(v) for n, v in state.items()}
    fresh = make_head("lda", 5, 48)
    fresh.run("restore", **sums)
    teach(fresh, np.empty((0, 48), "f"), np.empty(0, int))
    assert far_apart(scores(fresh, probe, range(5)), scores(head, probe, range(5))) < CLOSE


def test_a_session_goes_on_after_a_restore() -> None:
    clouds = Clouds(3, 32, seed=4)
    latents, slots = clouds.of_each(40)
    order = clouds.rng.permutation(120)
    whole, begun, resumed = (make_head("lda", 3, 32) for _ in range(3))
    teach(whole, latents[order], slots[order])
    gather(begun, latents[order[:64]], slots[order[:64]])
    resumed.run("restore", **saved(begun))
    teach(resumed, latents[order[64:]], slots[order[64:]])
    for name, value in saved(whole).items():
        np.testing.assert_array_equal(saved(resumed)[name], value, err_msg=name)


def test_forget_keeps_the_other_classes_scores() -> None:
    clouds = Clouds(5, 64, seed=5)
    head, reference = make_head("lda", 6, 64), LdaReference(6, 64)
    latents, slots = clouds.of_each(30)
    probe, _ = clouds.of_each(10)
    teach(head, latents, slots)
    reference.gather(latents, slots)
    others = [0, 1, 3, 4]
    before = scores(head, probe, others)
    np.testing.assert_array_equal(forget(head, 2), [1, 1, 0, 1, 1, 0])
    reference.forget(2)
    np.testing.assert_allclose(
        saved(head)["scatter"], reference.scatter, atol=1e-5 * reference.scatter.max()
    )
    assert saved(head)["pattern_count"].item() == 150
    after = scores(head, probe, others)
    np.testing.assert_allclose(differences(after), differences(before), atol=1e-3)
    np.testing.assert_array_equal(infer(head, probe)[0][:, 2], 0)
    assert far_apart(before, reference.scores(probe)) < CLOSE
    # Nor does solving again change them.
    teach(head, np.empty((0, 64), "f"), np.empty(0, int))
    assert far_apart(scores(head, probe, others), before) < CLOSE
    # The diagonal that familiarity uses is that of the scatter.
    np.testing.assert_allclose(saved(head)["squares"], np.diag(reference.scatter), rtol=1e-4)


def test_of_a_class_forgotten_and_taught_again_the_old_spread_remains() -> None:
    clouds = Clouds(4, 32, seed=6)
    others, slots = clouds.of_each(30)
    others, slots = others[slots > 0], slots[slots > 0]
    old, new, (probe, _) = clouds.draw(0, 50), clouds.draw(0, 20), clouds.of_each(20)
    again, fresh, reference = make_head("lda", 4, 32), make_head("lda", 4, 32), LdaReference(4, 32)
    for latents, taught in ((others, slots), (old, np.zeros(50, int))):
        teach(again, latents, taught)
        reference.gather(latents, taught)
    forget(again, 0)
    reference.forget(0)
    teach(again, new, 0)
    reference.gather(new, np.zeros(20, int))
    teach(fresh, others, slots)
    teach(fresh, new, 0)
    found, expected = saved(again), saved(fresh)
    # Nothing of the old patterns is left in the class itself.
    for name in ("class_sums", "class_counts"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-6, atol=1e-6)
    # What remains is in the shared covariance: the scatter of the old patterns around their mean.
    z = transformed(old)
    spread = (z - z.mean(axis=0)).T @ (z - z.mean(axis=0))
    np.testing.assert_allclose(found["scatter"] - expected["scatter"], spread, atol=2e-5)
    assert found["pattern_count"] - expected["pattern_count"] == 50
    one, other = scores(again, probe, range(4)), scores(fresh, probe, range(4))
    assert far_apart(one, reference.scores(probe)) < CLOSE
    assert far_apart(one, other) < 0.1
    assert (one.argmax(axis=1) == other.argmax(axis=1)).mean() > 0.95


def test_forgetting_all_classes_leaves_a_head_that_learns() -> None:
    clouds = Clouds(2, 16, seed=7)
    latents, slots = clouds.of_each(20)
    head = make_head("lda", 3, 16)
    teach(head, latents, slots)
    head.run("forget", mask=np.ones(3, "f"))
    np.testing.assert_array_equal(infer(head, latents)[0], 0)
    teach(head, latents, 2 - slots)
    np.testing.assert_array_equal(infer(head, latents)[0].argmax(axis=1), 2 - slots)


# Many frames alike: their rounding adds up in one direction.
@pytest.mark.parametrize("count", [1, 25, 20_000])
def test_frames_that_are_all_alike_are_told_apart(count: int) -> None:
    frames = np.random.default_rng(8).exponential(1, (2, 64)).astype("f")
    head = make_head("lda", 3, 64)
    teach(head, np.repeat(frames, count, axis=0), np.repeat([0, 2], count), temperature=0.05)
    chances, familiarity = infer(head, frames)
    np.testing.assert_allclose(chances, [[1, 0, 0], [0, 0, 1]], atol=1e-6)
    # As familiar as anything else that was taught, or more.
    assert ((familiarity > 0.4) & (familiarity <= 1)).all()


def test_one_class_alone_is_the_answer_to_everything() -> None:
    clouds = Clouds(2, 64, seed=9)
    head = make_head("lda", 3, 64)
    for _ in range(3):
        teach(head, clouds.draw(1, 20), 1)
        chances, familiarity = infer(head, np.concatenate([clouds.draw(0, 5), clouds.draw(1, 5)]))
        np.testing.assert_array_equal(chances, np.repeat([[0, 1, 0]], 10, axis=0))
        assert familiarity[5:].mean() >= familiarity[:5].mean()
    # One class that is left of two is one class too.
    teach(head, clouds.draw(0, 20), 0)
    forget(head, 0)
    teach(head, clouds.draw(1, 20), 1)
    np.testing.assert_array_equal(infer(head, clouds.draw(0, 5))[0][:, 1], 1)


def test_one_pattern_is_enough_to_answer() -> None:
    clouds = Clouds(3, 64, seed=10)
    head = make_head("lda", 3, 64)
    probe, slots = clouds.of_each(10)
    np.testing.assert_array_equal(infer(head, probe)[0], 0)
    teach(head, clouds.draw(0, 1), 0)
    np.testing.assert_array_equal(infer(head, probe)[0][:, 0], 1)
    teach(head, clouds.draw(1, 1), 1)
    teach(head, clouds.draw(2, 1), 2)
    chances, familiarity = infer(head, probe)
    assert (chances.argmax(axis=1) == slots).mean() > 0.8
    assert np.isfinite(familiarity).all()


def test_one_pattern_next_to_five_hundred_is_answered() -> None:
    clouds = Clouds(2, 64, seed=11)
    head, reference = make_head("lda", 2, 64), LdaReference(2, 64)
    many, one = clouds.draw(0, 500), clouds.draw(1, 1)
    teach(head, many, 0)
    teach(head, one, 1)
    reference.gather(np.concatenate([many, one]), np.repeat([0, 1], [500, 1]))
    probe, slots = clouds.of_each(50)
    found = scores(head, probe, range(2))
    assert far_apart(found, reference.scores(probe)) < CLOSE
    assert (found.argmax(axis=1) == slots).mean() > 0.9
    np.testing.assert_array_equal(infer(head, one)[0].argmax(axis=1), [1])


def test_the_temperature_changes_how_sure_it_is_and_not_what_it_answers() -> None:
    clouds = Clouds(4, 32, seed=12)
    latents, slots = clouds.of_each(20)
    probe, _ = clouds.of_each(10)
    found = []
    for temperature in (10.0, 40.0):
        head = make_head("lda", 4, 32)
        teach(head, latents, slots, temperature=temperature)
        found.append(scores(head, probe, range(4)))
    # A score divided by a temperature, times that temperature; float32 loses the improbable.
    np.testing.assert_allclose(differences(found[0]), differences(found[1]), atol=1e-2)


def test_the_state_of_a_large_head_is_small() -> None:
    head = make_head("lda", 50, 1024)
    tensors = head.signatures["save"].outputs.values()
    assert sum(np.prod(t.shape) * t.dtype.itemsize for t in tensors) <= MAX_BYTES
    state = head.run("save", zero=ZERO)
    assert sum(value.nbytes for value in state.values()) <= MAX_BYTES
