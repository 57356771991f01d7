"""The replay memory and its two policies."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lrtflite.memory import ReplayMemory, algorithm1

from lrtflite.errors import InputError


def patterns(session: int, count: int) -> np.ndarray:
    """Latents that tell where they come from: (session, index)."""
    return np.array([(session, i) for i in range(count)], np.float32)


@given(st.integers(1, 40), st.lists(st.integers(1, 30), min_size=1, max_size=12), st.integers(0, 9))
def test_algorithm1_keeps_size_and_contribution(
    capacity: int, batches: list[int], seed: int
) -> None:
    memory, rng = ReplayMemory(capacity, (2,)), np.random.default_rng(seed)
    seen = 0
    for i, n in enumerate(batches, start=1):
        room = capacity - len(memory)
        memory.update(patterns(i, n), np.full(n, i, np.int32), session=i, rng=rng)
        seen += n
        # The memory is as full as it can be, and never over.
        assert len(memory) == min(capacity, seen)
        # h = RM / i of the batch are in it (or the whole batch), more only to fill free places.
        mine = memory.latents[:, 0] == i
        assert mine.sum() == min(n, max(capacity // i, room))
        # Labels travel with their latents, and no pattern is in it twice.
        np.testing.assert_array_equal(memory.latents[:, 0], memory.slots)
        assert len(np.unique(memory.latents, axis=0)) == len(memory)


def test_algorithm1_replaces_at_random_not_by_position() -> None:
    rng = np.random.default_rng(0)
    stored, batch = np.zeros(100, np.int32), np.zeros(50, np.int32)
    drawn = [algorithm1(stored, batch, capacity=100, session=10, rng=rng) for _ in range(200)]
    assert all(len(set(placement.rows)) == 10 for placement in drawn)
    hits = np.bincount(np.concatenate([placement.rows for placement in drawn]), minlength=100)
    # 200 draws of 10 in 100: 20 expected each, standard deviation 4.2.
    assert hits.min() > 2
    assert hits.max() < 45


@given(
    st.integers(1, 40),
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 30)), min_size=1, max_size=8),
    st.integers(0, 9),
)
def test_balanced_gives_every_class_its_quota(
    capacity: int, batches: list[tuple[int, int]], seed: int
) -> None:
    memory, rng = ReplayMemory(capacity, (2,), policy="balanced"), np.random.default_rng(seed)
    for i, (label, n) in enumerate(batches, start=1):
        available = np.bincount(memory.slots, minlength=5)
        available[label] += n
        memory.update(patterns(i, n), np.full(n, label, np.int32), session=i, rng=rng)
        held = np.bincount(memory.slots, minlength=5)
        quota = capacity // (available > 0).sum()
        assert len(memory) == min(capacity, available.sum())
        assert (held >= np.minimum(available, quota)).all()
        assert len(np.unique(memory.latents, axis=0)) == len(memory)


def test_sample_draws_distinct_patterns_with_their_labels() -> None:
    memory, rng = ReplayMemory(30, (2,)), np.random.default_rng(0)
    latents = patterns(0, 30)
    memory.update(latents, latents[:, 1].astype(np.int32), session=1, rng=rng)
    out = np.empty((12, 2), np.float32)
    labels = memory.sample(12, out=out, rng=rng)
    np.testing.assert_array_equal(out[:, 1], labels)
    assert len(set(labels.tolist())) == 12
    # More than there are: all of them, and some once more.
    out = np.empty((70, 2), np.float32)
    labels = memory.sample(70, out=out, rng=rng)
    np.testing.assert_array_equal(out[:, 1], labels)
    assert sorted(set(np.bincount(labels, minlength=30).tolist())) == [2, 3]


def test_forget_drops_one_class_and_keeps_the_rest_aligned() -> None:
    memory, rng = ReplayMemory(10, (2,)), np.random.default_rng(0)
    labels = np.array([1, 2, 1, 3], np.int32)
    latents = np.stack([labels, np.arange(4)], axis=1).astype(np.float32)
    memory.update(latents, labels, session=1, rng=rng)
    memory.forget(1)
    assert sorted(memory.slots.tolist()) == [2, 3]
    np.testing.assert_array_equal(memory.latents[:, 0], memory.slots)


@pytest.mark.parametrize("change", ["update", "forget"])
def test_a_change_that_is_not_settled_can_be_taken_back(change: str) -> None:
    memory, rng = ReplayMemory(8, (2,)), np.random.default_rng(0)
    labels = np.array([1, 2, 1, 3, 1, 1], np.int32)
    latents = np.stack([labels, np.arange(6)], axis=1).astype(np.float32)
    memory.update(latents, labels, session=1, rng=rng)
    memory.settle()
    before = memory.latents.copy(), memory.slots.copy()
    if change == "update":
        memory.update(patterns(9, 8), np.full(8, 9, np.int32), session=2, rng=rng)
        assert 9 in memory.slots
    else:
        memory.forget(1)
        assert sorted(memory.slots.tolist()) == [2, 3]
    memory.revert()
    np.testing.assert_array_equal(memory.latents, before[0])
    np.testing.assert_array_equal(memory.slots, before[1])
    memory.forget(1)
    memory.settle()
    memory.revert()
    assert len(memory) == 2


def test_latents_of_any_shape_and_dtype() -> None:
    memory, rng = ReplayMemory(5, (4, 4, 3), dtype=np.uint8), np.random.default_rng(0)
    frames = [np.full((4, 4, 3), value, np.uint8) for value in range(250, 255)]
    memory.update(frames, np.arange(5, dtype=np.int32), session=1, rng=rng)
    assert memory.nbytes == 5 * (48 + 4)
    out = np.empty((5, 4, 4, 3), np.uint8)
    labels = memory.sample(5, out=out, rng=rng)
    np.testing.assert_array_equal(out[:, 3, 3, 2], 250 + labels)


def test_a_state_is_read_into_the_memory_itself() -> None:
    memory = ReplayMemory(4, (2,))
    given: list[np.ndarray] = []

    def read(out: np.ndarray) -> None:
        given.append(out)
        out[:] = patterns(7, 3)

    memory.load(np.array([7, 7, 7]), read)
    np.testing.assert_array_equal(memory.latents, patterns(7, 3))
    assert np.shares_memory(given[0], memory.latents)
    with pytest.raises(InputError, match="at least the 5 patterns in the state, got 4"):
        memory.load(np.zeros(5), lambda _: pytest.fail("there is no room"))
    assert len(memory) == 3

    def break_off(out: np.ndarray) -> None:
        out[0] = 0
        raise OSError

    # Rather no latents than some of one state with labels of another.
    with pytest.raises(OSError):  # noqa: PT011
        memory.load(np.array([1, 2]), break_off)
    assert len(memory) == 0


def test_a_memory_of_nothing_takes_nothing() -> None:
    memory = ReplayMemory(0, (2,))
    memory.update(patterns(1, 5), np.ones(5, np.int32), session=1, rng=np.random.default_rng(0))
    assert len(memory) == 0
    assert memory.nbytes == 0


@pytest.mark.parametrize(("size", "policy"), [(-1, "algorithm1"), (5, "newest")])
def test_bad_options(size: int, policy: str) -> None:
    with pytest.raises(InputError, match="Expected"):
        ReplayMemory(size, (2,), policy=policy)
