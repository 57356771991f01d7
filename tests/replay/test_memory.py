"""The replay memory: update, draw, forget, and load from a state."""

from __future__ import annotations

import numpy as np
import pytest

from lrtflite.errors import InputError
from lrtflite.replay.codecs import LatentForm
from lrtflite.replay.memory import ReplayMemory

FLOAT, BYTE = np.dtype(np.float32), np.dtype(np.uint8)
PAIRS = LatentForm((2,), FLOAT, FLOAT, (0.0, 100.0))


def patterns(session: int, count: int) -> np.ndarray:
    """Return latents that show their origin: (session, index)."""
    return np.array([(session, i) for i in range(count)], np.float32)


def test_sample_draws_distinct_patterns_with_their_labels() -> None:
    memory, rng = ReplayMemory(30, PAIRS), np.random.default_rng(0)
    latents = patterns(0, 30)
    memory.update(latents, latents[:, 1].astype(np.int32), session=1, rng=rng)
    out = np.empty((12, 2), np.float32)
    rows = memory.draw(12, rng)
    memory.read(rows, out)
    labels = memory.slots[rows]
    np.testing.assert_array_equal(out[:, 1], labels)
    assert len(set(labels.tolist())) == 12
    # More than there are: all rows, and some of them again.
    out = np.empty((70, 2), np.float32)
    rows = memory.draw(70, rng)
    memory.read(rows, out)
    labels = memory.slots[rows]
    np.testing.assert_array_equal(out[:, 1], labels)
    assert sorted(set(np.bincount(labels, minlength=30).tolist())) == [2, 3]


def test_forget_drops_one_class_and_keeps_the_rest_aligned() -> None:
    memory, rng = ReplayMemory(10, PAIRS), np.random.default_rng(0)
    labels = np.array([1, 2, 1, 3], np.int32)
    latents = np.stack([labels, np.arange(4)], axis=1).astype(np.float32)
    memory.update(latents, labels, session=1, rng=rng)
    memory.forget(1)
    assert sorted(memory.slots.tolist()) == [2, 3]
    np.testing.assert_array_equal(memory.codes[:, 0], memory.slots)


@pytest.mark.parametrize("change", ["update", "forget"])
def test_a_change_can_be_taken_back(change: str) -> None:
    memory, rng = ReplayMemory(8, PAIRS), np.random.default_rng(0)
    labels = np.array([1, 2, 1, 3, 1, 1], np.int32)
    latents = np.stack([labels, np.arange(6)], axis=1).astype(np.float32)
    memory.update(latents, labels, session=1, rng=rng)
    content, before = memory.content, (memory.codes, memory.slots.copy())
    if change == "update":
        memory.update(patterns(9, 8), np.full(8, 9, np.int32), session=2, rng=rng)
        assert 9 in memory.slots
    else:
        memory.forget(1)
        assert sorted(memory.slots.tolist()) == [2, 3]
    memory.content = content
    np.testing.assert_array_equal(memory.codes, before[0])
    np.testing.assert_array_equal(memory.slots, before[1])


def test_latents_of_any_shape_and_dtype() -> None:
    memory, rng = (
        ReplayMemory(5, LatentForm((4, 4, 3), BYTE, BYTE, (0.0, 255.0))),
        np.random.default_rng(0),
    )
    frames = [np.full((4, 4, 3), value, np.uint8) for value in range(250, 255)]
    memory.update(frames, np.arange(5, dtype=np.int32), session=1, rng=rng)
    assert memory.nbytes == 5 * (48 + 8)
    out = np.empty((5, 4, 4, 3), np.uint8)
    rows = memory.draw(5, rng)
    memory.read(rows, out)
    labels = memory.slots[rows]
    np.testing.assert_array_equal(out[:, 3, 3, 2], 250 + labels)


def test_a_content_that_is_too_large_is_refused() -> None:
    large, small, rng = ReplayMemory(5, PAIRS), ReplayMemory(4, PAIRS), np.random.default_rng(0)
    large.update(patterns(7, 5), np.full(5, 7, np.int32), session=1, rng=rng)
    with pytest.raises(InputError, match="at least the 5 patterns in the state, got 4"):
        small.load(large.content)
    assert len(small) == 0
    small.load(large.content.select(np.array([4, 0])))
    np.testing.assert_array_equal(small.codes, large.codes[[4, 0]])


def test_rows_that_are_replaced_are_not_kept_in_ram() -> None:
    memory, rng = ReplayMemory(3, PAIRS), np.random.default_rng(0)
    for session in range(1, 9):
        memory.update(patterns(session, 3), np.full(3, 1, np.int32), session=1, rng=rng)
    assert len(memory.content.rows.fresh) == 3


def test_a_memory_of_nothing_takes_nothing() -> None:
    memory = ReplayMemory(0, PAIRS)
    memory.update(patterns(1, 5), np.ones(5, np.int32), session=1, rng=np.random.default_rng(0))
    assert len(memory) == 0
    assert memory.nbytes == 0


@pytest.mark.parametrize(("size", "policy"), [(-1, "algorithm1"), (5, "newest")])
def test_bad_options(size: int, policy: str) -> None:
    with pytest.raises(InputError, match="Expected"):
        ReplayMemory(size, PAIRS, policy=policy)
