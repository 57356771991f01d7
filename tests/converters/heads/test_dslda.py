"""The paper's DSLDA against a loop over patterns in numpy, and against `lda`'s rules of a head."""

from __future__ import annotations

import numpy as np
import pytest

from closed_form_head import Clouds, gather, scores
from strategy_head import saved, vector_head

SLOTS, FEATURES, BATCH = 5, 24, 16


class Reference:
    """Streaming LDA in float64, one pattern after the other."""

    def __init__(self) -> None:
        self.mean, self.count = np.zeros((SLOTS, FEATURES)), np.zeros(SLOTS)
        self.sigma, self.t = np.zeros((FEATURES, FEATURES)), 0

    def see(self, x: np.ndarray, y: int) -> None:
        off = (x - self.mean[y])[:, None]
        delta = off @ off.T * self.t / (self.t + 1)
        self.sigma = (self.t * self.sigma + delta) / (self.t + 1)
        self.mean[y] += (x - self.mean[y]) / (self.count[y] + 1)
        self.count[y] += 1
        self.t += 1

    def scores(self, x: np.ndarray, e: float) -> np.ndarray:
        inverse = np.linalg.pinv((1 - e) * self.sigma + e * np.eye(FEATURES))
        return x @ inverse @ self.mean.T - 0.5 * np.diag(self.mean @ inverse @ self.mean.T)


@pytest.mark.parametrize("shrinkage", [1e-2, 1e-4])
def test_sessions_against_a_loop_over_patterns(shrinkage: float) -> None:
    clouds = Clouds(4, FEATURES)
    head, reference = vector_head("dslda", SLOTS, FEATURES, batch_size=BATCH), Reference()
    rates = {"shrinkage": np.array([shrinkage], "f"), "temperature": np.array([10.0], "f")}
    for kinds in ((0, 1), (2,), (1, 3)):
        latents = np.concatenate([clouds.draw(kind, 37) for kind in kinds])
        order = np.random.default_rng(0).permutation(len(latents))
        latents, slots = latents[order], np.repeat(kinds, 37)[order]
        counts = np.bincount(slots, minlength=SLOTS).astype("f")
        head.run("begin", counts=counts)
        gather(head, latents, slots)
        head.run("consolidate", counts=counts, **rates)
        for x, y in zip(latents.astype(float), slots):
            reference.see(x, y)
    state = saved(head)
    np.testing.assert_allclose(
        state["scatter"] / reference.t, reference.sigma, rtol=1e-3, atol=1e-4
    )
    np.testing.assert_array_equal(state["class_counts"], reference.count)
    probe, _ = clouds.of_each(10)
    found = scores(head, probe, slice(0, 4))
    expected = reference.scores(probe.astype(float), shrinkage)[:, :4]
    # Only differences between classes matter.
    found -= found.mean(axis=1, keepdims=True)
    expected -= expected.mean(axis=1, keepdims=True)
    assert np.abs(found - expected).max() < 0.02 * np.abs(expected).max()
    np.testing.assert_array_equal(found.argmax(1), expected.argmax(1))


def test_a_forgotten_class_has_no_answer() -> None:
    clouds = Clouds(3, FEATURES)
    head = vector_head("dslda", SLOTS, FEATURES, batch_size=BATCH)
    latents, slots = clouds.of_each(20)
    counts = np.bincount(slots, minlength=SLOTS).astype("f")
    rates = {"shrinkage": np.array([1e-4], "f"), "temperature": np.array([1.0], "f")}
    head.run("begin", counts=counts)
    gather(head, latents, slots)
    head.run("consolidate", counts=counts, **rates)
    left = head.run("forget", mask=np.eye(SLOTS, dtype="f")[1])["learned"]
    np.testing.assert_array_equal(left, [1, 0, 1, 0, 0])
    found = head.run("infer", latents=clouds.draw(1, 5))["probabilities"]
    np.testing.assert_array_equal(found[:, [1, 3, 4]], 0)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)
