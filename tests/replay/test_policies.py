"""Policies of the replay memory: the paper's two, and the seam that all of them use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learning import TRAINING, latents_of
from lrtflite import Learner
from lrtflite.errors import InputError
from lrtflite.replay.codecs import LatentForm
from lrtflite.replay.memory import ReplayMemory
from lrtflite.replay.policies import (
    POLICIES,
    Incoming,
    Placement,
    Stored,
    algorithm1,
    reservoir,
)

FLOAT = np.dtype(np.float32)
PAIRS = LatentForm((2,), FLOAT, FLOAT, (0.0, 100.0))


def patterns(session: int, count: int) -> np.ndarray:
    """Return latents that show their origin: (session, index)."""
    return np.array([(session, i) for i in range(count)], np.float32)


@given(st.integers(1, 40), st.lists(st.integers(1, 30), min_size=1, max_size=12), st.integers(0, 9))
def test_algorithm1_keeps_size_and_contribution(
    capacity: int, batches: list[int], seed: int
) -> None:
    memory, rng = ReplayMemory(capacity, PAIRS), np.random.default_rng(seed)
    seen = 0
    for i, n in enumerate(batches, start=1):
        room = capacity - len(memory)
        memory.update(patterns(i, n), np.full(n, i, np.int32), session=i, rng=rng)
        seen += n
        # The memory is as full as possible, and never over capacity.
        assert len(memory) == min(capacity, seen)
        # h = RM / i of the batch are in it (or the whole batch), more only to fill free places.
        mine = memory.codes[:, 0] == i
        assert mine.sum() == min(n, max(capacity // i, room))
        # Labels travel with their latents, and no pattern is in it twice.
        np.testing.assert_array_equal(memory.codes[:, 0], memory.slots)
        assert len(np.unique(memory.codes, axis=0)) == len(memory)


def test_algorithm1_replaces_at_random_not_by_position() -> None:
    rng = np.random.default_rng(0)
    stored, batch = np.zeros(100, np.int32), np.zeros(50, np.int32)
    memory = Stored(stored, stored, lambda _: pytest.fail("no latents are needed"), capacity=100)
    incoming = Incoming(batch, np.zeros((50, 2), np.float32), session=10)
    drawn = [algorithm1(memory, incoming, rng) for _ in range(200)]
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
    memory, rng = ReplayMemory(capacity, PAIRS, policy="balanced"), np.random.default_rng(seed)
    for i, (label, n) in enumerate(batches, start=1):
        available = np.bincount(memory.slots, minlength=5)
        available[label] += n
        memory.update(patterns(i, n), np.full(n, label, np.int32), session=i, rng=rng)
        held = np.bincount(memory.slots, minlength=5)
        quota = capacity // (available > 0).sum()
        assert len(memory) == min(capacity, available.sum())
        assert (held >= np.minimum(available, quota)).all()
        assert len(np.unique(memory.codes, axis=0)) == len(memory)


def test_a_policy_finds_its_counter_again_after_reopening(
    open_learner: Callable[..., Learner], tmp_path: Path
) -> None:
    seen: list[tuple[int, int]] = []

    def watched(stored: Stored, incoming: Incoming, rng: np.random.Generator) -> Placement:
        seen.append((len(stored), stored.counter))
        return reservoir(stored, incoming, rng)

    with POLICIES.registered("watched", watched):
        for count in (6, 7, 8):
            with open_learner(tmp_path, policy="watched", replay_size=10) as learner:
                learner.learn_latents(latents_of(0, count), "cup", training=TRAINING)
        assert seen == [(0, 0), (6, 6), (10, 13)]
        with open_learner(tmp_path, replay_size=10) as learner:
            assert learner.memory.counter == 21
            learner.undo()
            assert learner.memory.counter == 13


def test_a_counter_of_an_update_that_is_taken_back() -> None:
    memory, rng = ReplayMemory(4, PAIRS, policy="reservoir"), np.random.default_rng(0)
    memory.update(patterns(1, 3), np.ones(3, np.int32), session=1, rng=rng)
    before = memory.content
    memory.update(patterns(2, 9), np.ones(9, np.int32), session=2, rng=rng)
    assert (len(memory), memory.counter) == (4, 12)
    memory.content = before
    assert (len(memory), memory.counter) == (3, 3)
    memory.forget(1)
    assert (len(memory), memory.counter) == (0, 3)


def test_a_policy_that_looks_gets_the_latents_themselves() -> None:
    """Stored latents are bytes here, trained ones float32; a policy sees float32."""
    looked: list[np.ndarray] = []

    def nearest(stored: Stored, incoming: Incoming, rng: np.random.Generator) -> Placement:
        if not len(stored):
            return algorithm1(stored, incoming, rng)
        looked.append(stored.latents(np.array([1, 0])))
        return Placement(np.array([0]), np.array([0]))

    with POLICIES.registered("nearest", nearest):
        form = LatentForm((1,), np.dtype(np.uint8), FLOAT, (0.0, 255.0))
        memory, rng = ReplayMemory(2, form, policy="nearest"), np.random.default_rng(0)
        first = np.array([[200], [100]], np.uint8)
        memory.update(first, np.array([0, 1], np.int32), session=1, rng=rng)
        before = memory.codes[:, 0].tolist()
        memory.update(np.array([[7]], np.uint8), np.array([2], np.int32), session=2, rng=rng)
        [found] = looked
        assert found.dtype == np.float32
        assert found.tolist() == [[before[1]], [before[0]]]
        assert memory.codes.tolist() == [[7], [before[1]]]
        assert memory.slots.tolist()[0] == 2


@pytest.mark.parametrize(
    ("picks", "rows", "marks"),
    [
        ([0], [5], None),
        ([0, 1], [0, 0], None),
        ([9], [0], None),
        ([-1], [0], None),
        ([0], [99], None),
        ([0, 1], [0], None),
        ([0, 1], [0, 1], [1, 2, 3]),
    ],
    ids=["gap", "clash", "no such pattern", "negative", "beyond capacity", "uneven", "marks"],
)
def test_a_placement_that_cannot_be_is_refused(
    picks: list[int], rows: list[int], marks: list[int] | None
) -> None:
    given = None if marks is None else np.array(marks, np.int32)
    with POLICIES.registered(
        "odd", lambda *_: Placement(np.array(picks), np.array(rows), marks=given)
    ):
        form = LatentForm((2,), np.dtype("f4"), np.dtype("f4"), (0.0, 1.0))
        memory = ReplayMemory(10, form, policy="odd")
        two = np.zeros((2, 2), np.float32), np.zeros(2, np.int32)
        with pytest.raises(
            InputError, match=r"the policy 'odd' to place patterns .* fix the policy"
        ):
            memory.update(*two, session=1, rng=np.random.default_rng(0))
        assert len(memory) == 0


def test_an_empty_placement_of_any_dtype() -> None:
    with POLICIES.registered("none", lambda *_: Placement(np.array([]), np.array([]))):
        form = LatentForm((2,), np.dtype("f4"), np.dtype("f4"), (0.0, 1.0))
        memory = ReplayMemory(10, form, policy="none")
        two = np.zeros((2, 2), np.float32), np.zeros(2, np.int32)
        memory.update(*two, session=1, rng=np.random.default_rng(0))
        assert len(memory) == 0
