"""Reservoir sampling: every pattern seen so far is in the memory with the same probability."""

from __future__ import annotations

import numpy as np
import pytest

from lrtflite.replay.codecs import LatentForm
from lrtflite.replay.memory import ReplayMemory
from stored_patterns import stored

pytestmark = pytest.mark.slow

FLOAT = np.dtype(np.float32)
NUMBERS = LatentForm((1,), FLOAT, FLOAT, (0.0, 1000.0))


def numbered(start: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    latents = np.arange(start, start + count, dtype=np.float32)[:, np.newaxis]
    return latents, np.zeros(count, np.int32)


@pytest.mark.parametrize("sessions", [[40], [1] * 40, [3, 20, 1, 16]])
def test_every_pattern_is_as_likely_in_sessions_of_any_size(sessions: list[int]) -> None:
    """1,000 draws of 10 in 40: 250 expected for each, standard deviation 13.7."""
    rng = np.random.default_rng(0)
    hits = np.zeros(40, int)
    for _ in range(1000):
        memory, seen = ReplayMemory(10, NUMBERS, policy="reservoir"), 0
        for number, count in enumerate(sessions, start=1):
            memory.update(*numbered(seen, count), session=number, rng=rng)
            seen += count
        hits[memory.codes[:, 0].astype(int)] += 1
        assert memory.counter == 40
    deviations = (hits - 250) / 13.7
    assert np.abs(deviations).max() < 4.5
    # 99.99 % of chi-square with 39 degrees of freedom lie below 81.
    assert (deviations**2).sum() < 81


def test_rows_are_as_likely_as_patterns() -> None:
    """A new pattern goes to a random row: 2,000 draws over 10 rows, standard deviation 13.4."""
    rng = np.random.default_rng(1)
    hits = np.zeros(10, int)
    draws = 0
    while draws < 2000:
        memory = ReplayMemory(10, NUMBERS, policy="reservoir")
        memory.update(*numbered(0, 10), session=1, rng=rng)
        memory.update(*numbered(10, 1), session=2, rng=rng)
        where = np.flatnonzero(memory.codes[:, 0] == 10)
        hits[where] += 1
        draws += len(where)
    assert np.abs(hits - 200).max() < 4.5 * 13.4


def test_rows_of_unknown_origin_count_once() -> None:
    """A merged memory has counter 0. Its ten rows count as ten patterns, so the next ten stay with
    probability 1/2 on average: 10 (1/11 + ... + 1/20) = 6.7 of them are placed, 5 remain.
    """
    rng = np.random.default_rng(2)
    found = []
    for _ in range(1000):
        memory = ReplayMemory(10, NUMBERS, policy="reservoir")
        memory.load(stored(numbered(0, 10)[0]))
        memory.update(*numbered(10, 10), session=1, rng=rng)
        found.append((memory.codes >= 10).sum())
    # The standard deviation of the mean is 1.15 / sqrt(1000) = 0.036 (hypergeometric).
    assert np.mean(found) == pytest.approx(5, abs=0.16)
    assert memory.counter == 20
