"""Herding, against hand-worked numbers and the formula of iCaRL's Algorithm 4."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icarl_reference import herding_order
from lrtflite.replay.herding import herd


def test_by_hand() -> None:
    # The mean is 3. First 2, the nearest; (2 + 1) / 2 is nearer to 3 than (2 + 0) / 2 and
    # (2 + 9) / 2; (2 + 1 + 9) / 3 = 4 is nearer than (2 + 1 + 0) / 3 = 1.
    points = np.array([[0.0], [1.0], [2.0], [9.0]])
    assert herd(points, 4).tolist() == [2, 1, 3, 0]


@given(st.integers(1, 30), st.integers(1, 6), st.integers(0, 10_000))
def test_it_is_algorithm_4(count: int, features: int, seed: int) -> None:
    latents = np.random.default_rng(seed).normal(size=(count, features))
    assert herd(latents, count).tolist() == herding_order(latents)


def test_a_shorter_choice_is_the_beginning_of_a_longer_one() -> None:
    latents = np.random.default_rng(0).exponential(1, (25, 8)).astype(np.float32)
    longest = herd(latents, 25)
    assert sorted(longest) == list(range(25))
    for count in range(26):
        assert herd(latents, count).tolist() == longest[:count].tolist()


def test_a_few_are_nearer_to_the_mean_than_a_few_at_random() -> None:
    rng = np.random.default_rng(1)
    latents = rng.exponential(1, (100, 16))
    mean = latents.mean(axis=0)
    chosen = float(np.linalg.norm(mean - latents[herd(latents, 10)].mean(axis=0)))
    drawn = [
        np.linalg.norm(mean - latents[rng.choice(100, 10, replace=False)].mean(axis=0))
        for _ in range(200)
    ]
    assert chosen < min(drawn)


@pytest.mark.parametrize(("count", "wanted"), [(0, []), (2, [0, 1]), (99, [0, 1, 2])])
def test_ties_and_limits(count: int, wanted: list[int]) -> None:
    assert herd(np.ones((3, 4), np.float32), count).tolist() == wanted


@given(st.integers(0, 10_000))
def test_the_first_of_two_is_the_first(seed: int) -> None:
    # Both are equally far from their mean, whatever the rounding says.
    assert herd(np.random.default_rng(seed).normal(size=(2, 50)), 1).tolist() == [0]


def test_nothing_to_choose_from() -> None:
    found = herd(np.empty((0, 4), np.float32), 5)
    assert found.shape == (0,)
    assert found.dtype == np.int64


def test_latents_of_any_shape() -> None:
    latents = np.random.default_rng(2).normal(size=(9, 2, 2, 3))
    assert herd(latents, 5).tolist() == herd(latents.reshape(9, 12), 5).tolist()
