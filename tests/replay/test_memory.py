"""The replay memory: update, draw, revert, forget, and load from a state."""

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
def test_a_change_that_is_not_settled_can_be_taken_back(change: str) -> None:
    memory, rng = ReplayMemory(8, PAIRS), np.random.default_rng(0)
    labels = np.array([1, 2, 1, 3, 1, 1], np.int32)
    latents = np.stack([labels, np.arange(6)], axis=1).astype(np.float32)
    memory.update(latents, labels, session=1, rng=rng)
    memory.settle()
    before = memory.codes.copy(), memory.slots.copy()
    if change == "update":
        memory.update(patterns(9, 8), np.full(8, 9, np.int32), session=2, rng=rng)
        assert 9 in memory.slots
    else:
        memory.forget(1)
        assert sorted(memory.slots.tolist()) == [2, 3]
    memory.revert()
    np.testing.assert_array_equal(memory.codes, before[0])
    np.testing.assert_array_equal(memory.slots, before[1])
    memory.forget(1)
    memory.settle()
    memory.revert()
    assert len(memory) == 2


def test_latents_of_any_shape_and_dtype() -> None:
    memory, rng = (
        ReplayMemory(5, LatentForm((4, 4, 3), BYTE, BYTE, (0.0, 255.0))),
        np.random.default_rng(0),
    )
    frames = [np.full((4, 4, 3), value, np.uint8) for value in range(250, 255)]
    memory.update(frames, np.arange(5, dtype=np.int32), session=1, rng=rng)
    assert memory.nbytes == 5 * (48 + 4)
    out = np.empty((5, 4, 4, 3), np.uint8)
    rows = memory.draw(5, rng)
    memory.read(rows, out)
    labels = memory.slots[rows]
    np.testing.assert_array_equal(out[:, 3, 3, 2], 250 + labels)


def test_a_state_is_read_into_the_memory_itself() -> None:
    memory = ReplayMemory(4, PAIRS)
    given: list[np.ndarray] = []

    def read(out: np.ndarray) -> None:
        given.append(out)
        out[:] = patterns(7, 3)

    memory.load(np.array([7, 7, 7]), read)
    np.testing.assert_array_equal(memory.codes, patterns(7, 3))
    assert np.shares_memory(given[0], memory.codes)
    with pytest.raises(InputError, match="at least the 5 patterns in the state, got 4"):
        memory.load(np.zeros(5), lambda _: pytest.fail("there is no room"))
    assert len(memory) == 3

    def break_off(out: np.ndarray) -> None:
        out[0] = 0
        raise OSError

    # Better no latents than latents of one state with slots of another.
    with pytest.raises(OSError):  # noqa: PT011
        memory.load(np.array([1, 2]), break_off)
    assert len(memory) == 0


def test_a_memory_of_nothing_takes_nothing() -> None:
    memory = ReplayMemory(0, PAIRS)
    memory.update(patterns(1, 5), np.ones(5, np.int32), session=1, rng=np.random.default_rng(0))
    assert len(memory) == 0
    assert memory.nbytes == 0


@pytest.mark.parametrize(("size", "policy"), [(-1, "algorithm1"), (5, "newest")])
def test_bad_options(size: int, policy: str) -> None:
    with pytest.raises(InputError, match="Expected"):
        ReplayMemory(size, PAIRS, policy=policy)
