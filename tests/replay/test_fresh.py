"""The policy `fresh`: half of a class from its newest session, half of the rest before it."""

from __future__ import annotations

import numpy as np
import pytest

from lrtflite.replay.codecs import LatentForm
from lrtflite.replay.memory import ReplayMemory
from stored_patterns import stored

FLOAT = np.dtype(np.float32)
PAIRS = LatentForm((2,), FLOAT, FLOAT, (0.0, 1000.0))


def teach(memory: ReplayMemory, session: int, counts: dict[int, int], seed: int = 0) -> None:
    slots = np.repeat(list(counts), list(counts.values())).astype(np.int32)
    latents = np.array([(session, index) for index in range(len(slots))], np.float32)
    memory.update(latents, slots, session=session, rng=np.random.default_rng((seed, session)))


def by_session(memory: ReplayMemory, slot: int) -> dict[int, int]:
    """Return the number of rows of a class by the session that they come from."""
    mine = memory.codes[memory.slots == slot]
    np.testing.assert_array_equal(memory.marks, memory.codes[:, 0])
    sessions, counts = np.unique(mine[:, 0].astype(int), return_counts=True)
    return dict(zip(sessions.tolist(), counts.tolist()))


def test_sessions_of_one_class_have_halves_of_its_rows() -> None:
    memory = ReplayMemory(16, PAIRS, policy="fresh")
    for session in (1, 2, 3, 4):
        teach(memory, session, {0: 30})
    # 8 of 16 for the newest, 4 of the remaining 8, 2 of 4, and the oldest has the last 2.
    assert by_session(memory, 0) == {1: 2, 2: 2, 3: 4, 4: 8}


def test_a_short_session_leaves_its_places_to_the_others() -> None:
    memory = ReplayMemory(16, PAIRS, policy="fresh")
    teach(memory, 1, {0: 30})
    teach(memory, 2, {0: 3})
    assert by_session(memory, 0) == {1: 13, 2: 3}


def test_a_class_that_shrinks_without_a_session_keeps_its_halves() -> None:
    memory = ReplayMemory(16, PAIRS, policy="fresh")
    teach(memory, 1, {0: 30})
    teach(memory, 2, {0: 30})
    assert by_session(memory, 0) == {1: 8, 2: 8}
    teach(memory, 3, {1: 30})
    assert by_session(memory, 1) == {3: 8}
    assert by_session(memory, 0) == {1: 4, 2: 4}


def test_rows_of_unknown_origin_count_as_the_oldest() -> None:
    """Rows from another policy have the mark 0."""
    memory = ReplayMemory(8, PAIRS, policy="fresh")
    memory.load(stored(np.zeros((8, 2), np.float32)))
    teach(memory, 1, {0: 30})
    teach(memory, 2, {0: 30})
    assert by_session(memory, 0) == {0: 2, 1: 2, 2: 4}


@pytest.mark.parametrize("seed", range(3))
def test_patterns_of_a_session_are_drawn_at_random(seed: int) -> None:
    memory = ReplayMemory(10, PAIRS, policy="fresh")
    teach(memory, 1, {0: 100}, seed=seed)
    kept = memory.codes[:, 1]
    assert kept.max() - kept.min() > 40
    other = ReplayMemory(10, PAIRS, policy="fresh")
    teach(other, 1, {0: 100}, seed=seed + 10)
    assert set(other.codes[:, 1]) != set(kept)
