"""Two closed forms whose scores are added, against float64 numpy."""

from __future__ import annotations

import numpy as np
import pytest

from closed_form_head import TEMPERATURE, Clouds, forget, gather, make_head, saved, teach
from lda_reference import LdaReference, far_apart
from lrtflite_converters.blocks.block import Chain
from lrtflite_converters.heads import HEADS
from lrtflite_converters.heads.head import Head, HeadPlan
from lrtflite_converters.training.trunk import Trunk

CLOSE = 1e-4
FIRST, SECOND, SLOTS = 48, 64, 6


def make_two(*, first: int = FIRST, second: int = SECOND) -> Head:
    trunk = Trunk(Chain((), image=(first + second,)))
    plan = HeadPlan(slots=SLOTS, batch_size=32, trunk=trunk, parts=(first, second))
    return HEADS.choose("two_lda")(plan)


class TwoReferences:
    """Both closed forms in numpy, and the scores that the head divides and adds."""

    def __init__(self) -> None:
        self.forms = LdaReference(SLOTS, FIRST), LdaReference(SLOTS, SECOND)

    def gather(self, latents: np.ndarray, slots: np.ndarray) -> None:
        for form, part in zip(self.forms, np.split(latents, [FIRST], axis=1)):
            form.gather(part, slots)

    def temperature(self, number: int) -> float:
        """TEMPERATURE times the mean squared distance of a class from the mean of all."""
        form = self.forms[number]
        means = form.sums[form.known] / form.counts[form.known, np.newaxis]
        offsets = means - form.sums.sum(axis=0) / form.counts.sum()
        solved = np.linalg.solve(form.covariance(), offsets.T).T
        return float(TEMPERATURE * (offsets * solved).sum(axis=1).mean())

    def weight(self) -> float:
        return float(min(1.0, (self.forms[1].patterns / SECOND) ** 2))

    def logarithms(self, latents: np.ndarray) -> np.ndarray:
        """(n, known): log-probabilities, up to what is common to all classes."""
        one, two = (
            form.scores(part) / self.temperature(number)
            for number, (form, part) in enumerate(
                zip(self.forms, np.split(latents, [FIRST], axis=1))
            )
        )
        found: np.ndarray = (one + self.weight() * two) / (1 + self.weight())
        return found


def logarithms(head: Head, latents: np.ndarray, known: np.ndarray) -> np.ndarray:
    chances = head.run("infer", latents=latents)["probabilities"]
    found: np.ndarray = np.log(chances[:, known].astype(float))
    return found


@pytest.mark.parametrize("count", [2, 5, 40])
def test_scores_of_both_layers_are_added_by_their_weights(count: int) -> None:
    """With 2, the second form's weight is 0.004 to 0.14; with 40 it is 1."""
    clouds = Clouds(4, FIRST + SECOND, seed=count)
    head, reference = make_two(), TwoReferences()
    probe, _ = clouds.of_each(15)
    for kind in (2, 0, 3, 1, 0, 2):
        latents = clouds.draw(kind, count)
        teach(head, latents, kind)
        reference.gather(latents, np.repeat(kind, count))
        known = reference.forms[0].known
        if len(known) > 1:
            found, expected = logarithms(head, probe, known), reference.logarithms(probe)
            assert far_apart(found, expected) < CLOSE
            np.testing.assert_array_equal(found.argmax(axis=1), expected.argmax(axis=1))


def test_the_second_layer_waits_until_there_are_patterns() -> None:
    """Check that a few frames are answered by the first layer if the second holds noise."""
    clouds, rng = Clouds(3, FIRST, seed=1), np.random.default_rng(1)

    def with_noise(latents: np.ndarray) -> np.ndarray:
        noise = rng.exponential(1, (len(latents), SECOND)).astype("f")
        return np.concatenate([latents, noise], axis=1)

    head = make_two()
    first = HEADS.choose("lda")(
        HeadPlan(slots=SLOTS, batch_size=32, trunk=Trunk(Chain((), image=(FIRST,))))
    )
    for kind in range(3):
        latents = clouds.draw(kind, 2)
        teach(first, latents, kind)
        teach(head, with_noise(latents), kind)
    probe, slots = clouds.of_each(40)
    alone = first.run("infer", latents=probe)["probabilities"].argmax(axis=1)
    both = head.run("infer", latents=with_noise(probe))["probabilities"].argmax(axis=1)
    assert (both == alone).mean() > 0.95
    assert (both == slots).mean() > 0.8


def test_each_tensor_of_both_forms_merges_by_the_rule_of_one() -> None:
    head = make_two()
    one = {name: rule for name, rule in head.merging.items() if not name.startswith("second_")}
    two = {
        name[len("second_") :]: rule
        for name, rule in head.merging.items()
        if name.startswith("second_")
    }
    assert one == two
    assert set(head.merging) == set(head.state)
    assert set(one.values()) == {"sum", "sum by class", "solve"}


def test_the_sums_of_two_heads_add_up_to_those_of_one() -> None:
    clouds = Clouds(4, FIRST + SECOND, seed=3)
    latents, slots = clouds.of_each(30)
    whole, left, right, merged = (make_two() for _ in range(4))
    teach(whole, latents, slots)
    gather(left, latents[::2], slots[::2])
    gather(right, latents[1::2], slots[1::2])
    rules, one, other = merged.merging, saved(left), saved(right)
    added = {
        name: one[name] + other[name] if rule != "solve" else np.zeros_like(one[name])
        for name, rule in rules.items()
    }
    merged.run("restore", **added)
    teach(merged, np.empty((0, FIRST + SECOND), "f"), np.empty(0, int))
    probe, _ = clouds.of_each(10)
    known = np.arange(4)
    assert far_apart(logarithms(merged, probe, known), logarithms(whole, probe, known)) < CLOSE


def test_a_forgotten_class_leaves_both_forms() -> None:
    clouds = Clouds(4, FIRST + SECOND, seed=4)
    latents, slots = clouds.of_each(40)
    head = make_two()
    teach(head, latents, slots)
    np.testing.assert_array_equal(forget(head, 1), [1, 0, 1, 1, 0, 0])
    state = saved(head)
    for name in ("class_sums", "second_class_sums", "weights", "second_weights"):
        np.testing.assert_array_equal(state[name][1], 0, err_msg=name)
    probe, _ = clouds.of_each(5)
    np.testing.assert_array_equal(head.run("infer", latents=probe)["probabilities"][:, 1], 0)


def test_familiarity_is_that_of_the_first_layer_with_the_class_answered() -> None:
    clouds = Clouds(4, FIRST + SECOND, seed=5)
    latents, slots = clouds.of_each(40)
    # The second layer's vectors of two classes are swapped in the probes: the forms disagree.
    probe, _ = clouds.of_each(20)
    probe[:40, FIRST:] = np.roll(probe[:40, FIRST:], 20, axis=0)
    probe[:40, FIRST:] *= 1.5
    head, first = make_two(), make_head("lda", SLOTS, FIRST)
    teach(head, latents, slots)
    teach(first, latents[:, :FIRST], slots)
    found, alone = head.run("infer", latents=probe), first.run("infer", latents=probe[:, :FIRST])
    answers, answers_alone = (each["probabilities"].argmax(axis=1) for each in (found, alone))
    same = answers == answers_alone
    assert 10 < same.sum() < 80
    np.testing.assert_allclose(
        found["familiarity"][same], alone["familiarity"][same], rtol=1e-3, atol=1e-4
    )
    # A frame is less like the class that only the second layer sees in it.
    assert found["familiarity"][~same].mean() < alone["familiarity"][~same].mean()
