"""Conjugate gradients against numpy.linalg.solve, and where there is little to solve."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from lrtflite_converters.heads.conjugate_gradients import solve

CAP = 400


def matrix(size: int, *, condition: float, seed: int = 0) -> np.ndarray:
    """(size, size) float32, symmetric, with eigenvalues from 1 down to 1 / condition."""
    turned, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))
    eigenvalues = np.geomspace(1, 1 / condition, size)
    return ((turned * eigenvalues) @ turned.T).astype("f")


def targets(rows: int, size: int) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(rows, size)).astype("f")


class Multiplied:
    """Multiplies rows by a matrix, and counts how often."""

    def __init__(self, a: np.ndarray) -> None:
        self.a, self.calls = tf.constant(a), 0

    def __call__(self, rows: Any) -> Any:
        self.calls += 1
        return tf.matmul(rows, self.a)


def solved(
    apply: Callable[[Any], Any],
    a: np.ndarray,
    b: np.ndarray,
    start: np.ndarray | None = None,
    *,
    tolerance: float = 1e-5,
    most_steps: int = CAP,
) -> np.ndarray:
    first = np.zeros_like(b) if start is None else start
    return np.asarray(
        solve(
            apply,
            tf.constant(b),
            tf.constant(first),
            diagonal=tf.constant(np.diag(a)),
            tolerance=tolerance,
            most_steps=most_steps,
        )
    )


@pytest.mark.parametrize("condition", [1, 36, 1e3])
@pytest.mark.parametrize("size", [1, 8, 256])
def test_against_numpy(size: int, condition: float) -> None:
    a, b = matrix(size, condition=condition), targets(5, size)
    expected = np.linalg.solve(a.astype(float), b.T.astype(float)).T
    apply = Multiplied(a)
    found = solved(apply, a, b)
    assert apply.calls < CAP
    residual = np.linalg.norm(found @ a.astype(float) - b, axis=1) / np.linalg.norm(b, axis=1)
    # The residual of the steps drifts from the true one by rounding.
    assert residual.max() < 5e-5
    error = np.linalg.norm(found - expected, axis=1) / np.linalg.norm(expected, axis=1)
    assert error.max() < 5e-5 * condition


def test_rows_of_zeros_stay_zero() -> None:
    a, b = matrix(16, condition=50), targets(4, 16)
    b[1] = b[3] = 0
    found = solved(Multiplied(a), a, b)
    np.testing.assert_array_equal(found[[1, 3]], 0)
    alone = solved(Multiplied(a), a, b[[0, 2]])
    np.testing.assert_allclose(found[[0, 2]], alone, rtol=1e-5, atol=1e-6)
    apply = Multiplied(a)
    np.testing.assert_array_equal(solved(apply, a, np.zeros_like(b)), 0)
    assert apply.calls == 1  # nothing to solve takes no step


def test_small_and_large_targets_are_solved_alike() -> None:
    a, b = matrix(16, condition=50), targets(1, 16)
    expected = solved(Multiplied(a), a, b)
    for scale in (1e-8, 1e6):
        found = solved(Multiplied(a), a, (scale * b).astype("f"))
        np.testing.assert_allclose(found, scale * expected, rtol=1e-3, atol=1e-4 * scale)
    together = np.concatenate([b, (1e-6 * b).astype("f")])
    found = solved(Multiplied(a), a, together)
    np.testing.assert_allclose(found[1], 1e-6 * found[0], rtol=1e-3, atol=1e-10)


def test_no_more_steps_than_the_cap() -> None:
    a, b = matrix(64, condition=1e3), targets(3, 64)
    apply = Multiplied(a)
    early = solved(apply, a, b, most_steps=3)
    assert apply.calls == 1 + 3  # the residual of the start, and one for each step
    exact = np.linalg.solve(a.astype(float), b.T.astype(float)).T
    later = solved(Multiplied(a), a, b, most_steps=30)

    def energy(error: np.ndarray) -> np.ndarray:
        """The norm that falls with every step of conjugate gradients."""
        return np.einsum("ci,ij,cj->c", error, a.astype(float), error)

    assert (energy(early - exact) < energy(exact)).all()
    assert (energy(later - exact) < energy(early - exact)).all()


def test_a_start_that_solves_it_is_kept() -> None:
    a, b = matrix(32, condition=36), targets(3, 32)
    exact = np.linalg.solve(a.astype(float), b.T.astype(float)).T.astype("f")
    apply = Multiplied(a)
    np.testing.assert_array_equal(solved(apply, a, b, exact), exact)
    assert apply.calls == 1
    # A start that is near takes fewer steps than zero does.
    cold, warm = Multiplied(a), Multiplied(a)
    solved(cold, a, b)
    near = solved(warm, a, b, (exact + 1e-3 * targets(3, 32)).astype("f"))
    assert warm.calls < cold.calls
    np.testing.assert_allclose(near, exact, rtol=1e-3, atol=1e-3)


def test_the_diagonal_takes_the_scale_of_features_away() -> None:
    # Features of very different scale: without a preconditioner some hundred steps.
    a, b = matrix(32, condition=4), targets(3, 32)
    scale = np.geomspace(1, 100, 32)
    scaled = (a * scale[:, np.newaxis] * scale).astype("f")
    apply = Multiplied(scaled)
    solved(apply, scaled, b, tolerance=1e-4)
    assert apply.calls < 40


def test_a_matrix_with_an_eigenvalue_below_zero_gives_numbers() -> None:
    a, b = matrix(8, condition=10), targets(3, 8)
    values, vectors = np.linalg.eigh(a.astype(float))
    values[0] = -1e-3
    indefinite = ((vectors * values) @ vectors.T).astype("f")
    assert np.isfinite(solved(Multiplied(indefinite), indefinite, b)).all()
