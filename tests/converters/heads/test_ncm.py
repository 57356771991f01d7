"""Nearest class mean by cosine similarity, checked against numpy."""

from __future__ import annotations

import numpy as np

from closed_form_head import Clouds, forget, make_head, saved, scores, teach
from lda_reference import differences, transformed

# Cosines are at most 1 apart.
TEMPERATURE = 0.1


def cosines(taught: list[np.ndarray], probe: np.ndarray) -> np.ndarray:
    """(n, classes): between each pattern and the mean of each class."""
    means = np.stack([transformed(latents).mean(axis=0) for latents in taught])
    return transformed(probe) @ (means / np.linalg.norm(means, axis=1, keepdims=True)).T


def test_answers_are_cosines_with_the_means() -> None:
    clouds = Clouds(6, 128)
    taught, (probe, slots) = [clouds.draw(kind, 15) for kind in range(6)], clouds.of_each(20)
    expected = cosines(taught, probe)
    found = []
    for order in (range(6), (4, 2, 5, 1, 0, 3)):
        head = make_head("ncm", 8, 128)
        for kind in order:
            for part in np.array_split(taught[kind], 3):
                teach(head, part, kind, temperature=TEMPERATURE)
        found.append(scores(head, probe, range(6)))
        np.testing.assert_allclose(differences(found[-1]), differences(expected), atol=1e-6)
        np.testing.assert_array_equal(found[-1].argmax(axis=1), expected.argmax(axis=1))
        free = head.run("infer", latents=probe)["probabilities"][:, 6:]
        np.testing.assert_array_equal(free, 0)
    assert (found[0].argmax(axis=1) == slots).mean() > 0.9


def test_a_class_with_many_patterns_is_no_likelier() -> None:
    clouds = Clouds(2, 64, seed=1)
    taught, (probe, _) = [clouds.draw(0, 500), clouds.draw(1, 1)], clouds.of_each(20)
    head = make_head("ncm", 2, 64)
    for kind in range(2):
        teach(head, taught[kind], kind, temperature=TEMPERATURE)
    found = scores(head, probe, range(2))
    np.testing.assert_allclose(differences(found), differences(cosines(taught, probe)), atol=1e-6)


def test_forget_drops_one_class_and_leaves_the_others() -> None:
    clouds = Clouds(4, 32, seed=2)
    taught, (probe, _) = [clouds.draw(kind, 10) for kind in range(4)], clouds.of_each(10)
    head = make_head("ncm", 4, 32)
    for kind in range(4):
        teach(head, taught[kind], kind, temperature=TEMPERATURE)
    before = saved(head)["class_sums"]
    np.testing.assert_array_equal(forget(head, 1), [1, 0, 1, 1])
    after = saved(head)["class_sums"]
    np.testing.assert_array_equal(after[1], 0)
    np.testing.assert_array_equal(after[[0, 2, 3]], before[[0, 2, 3]])
    np.testing.assert_array_equal(head.run("infer", latents=probe)["probabilities"][:, 1], 0)
    # Once the class is taught again, no trace of its old patterns remains in the answers.
    taught[1] = clouds.draw(1, 5)
    teach(head, taught[1], 1, temperature=TEMPERATURE)
    found = scores(head, probe, range(4))
    np.testing.assert_allclose(differences(found), differences(cosines(taught, probe)), atol=1e-6)


def test_only_the_temperature_is_computed_again() -> None:
    head = make_head("ncm", 4, 32)
    solved = {name for name, rule in head.merging.items() if rule == "solve"}
    assert solved == {"temperature"}
    assert set(head.merging.values()) == {"sum", "sum by class", "solve"}
    assert set(head.merging) == set(saved(head))


def test_little_that_was_taught_gives_numbers() -> None:
    head, frame = make_head("ncm", 3, 16), np.random.default_rng(3).exponential(1, (1, 16))
    latents = np.repeat(frame, 20, axis=0).astype("f")
    nothing = head.run("infer", latents=latents[:1])
    np.testing.assert_array_equal(nothing["probabilities"], 0)
    # One pattern; then one class of frames that are all alike; then a latent of zeros.
    for taught in (latents[:1], latents, np.zeros((1, 16), "f")):
        teach(head, taught, 1, temperature=TEMPERATURE)
        found = head.run("infer", latents=np.concatenate([latents[:1], np.zeros((1, 16), "f")]))
        np.testing.assert_array_equal(found["probabilities"], [[0, 1, 0]] * 2)
        assert ((found["familiarity"] >= 0) & (found["familiarity"] <= 1)).all()
