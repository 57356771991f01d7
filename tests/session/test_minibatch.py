"""Mini-batches: aligned, in proportion, and fair to every pattern."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lrtflite.bundle.feeding import SESSION, SESSION_AND_MEMORY, Feeding
from lrtflite.replay.codecs import LatentForm
from lrtflite.replay.memory import ReplayMemory
from lrtflite.session.minibatch import Patterns, each_once, gather_steps, minibatches

CLASSES = 100
FLOAT, BYTE = np.dtype(np.float32), np.dtype(np.uint8)


def patterns(new: int, stored: int) -> Patterns:
    """Return patterns whose latent is their class: new 0, 1, ..., and stored 50, 51, ..."""
    memory = ReplayMemory(30, LatentForm((1,), FLOAT, FLOAT, (0.0, 100.0)))
    old = np.arange(50, 50 + stored, dtype=np.float32)[:, None]
    rng = np.random.default_rng(0)
    memory.update(old, old[:, 0].astype(np.int32), session=1, rng=rng)
    latents = np.arange(new, dtype=np.float32)[:, None]
    return Patterns(latents, latents[:, 0].astype(np.int32), memory)


def room(size: int) -> np.ndarray:
    """Return (size, 1) float32, filled with values that no mini-batch may keep."""
    return np.full((size, 1), 77, np.float32)


def check_aligned(latents: np.ndarray, targets: np.ndarray, filled: int) -> None:
    """Assert that each latent is its class, and that places after `filled` are empty."""
    np.testing.assert_array_equal(targets[:filled].sum(-1), 1)
    np.testing.assert_array_equal(targets[:filled].argmax(-1), latents[:filled, 0])
    assert not targets[filled:].any()
    assert not latents[filled:].any()


@given(
    n=st.integers(1, 40),
    stored=st.integers(0, 30),
    new=st.integers(1, 12),
    seed=st.integers(0, 5),
)
def test_rows_are_aligned_and_new_patterns_take_turns(
    n: int, stored: int, new: int, seed: int
) -> None:
    rng, size = np.random.default_rng(seed), 12
    feeding = Feeding(batch_size=size, new_per_batch=new, epochs=3, least_steps=1)
    composition = feeding.composition(new=n, stored=stored)
    steps = feeding.steps(new=n, stored=stored)
    used: list[int] = []
    for batch, targets in minibatches(
        patterns(n, stored), feeding, steps=steps, classes=CLASSES, rng=rng, out=room(size)
    ):
        assert batch.shape == (size, 1)
        check_aligned(batch, targets, size)
        replayed = batch[batch[:, 0] >= 50, 0]
        assert len(replayed) == composition.replayed
        if stored:
            # Every stored pattern comes as often as any other, give or take one.
            times = np.bincount(replayed.astype(int) - 50, minlength=stored)
            assert times.max() - times.min() <= 1
        used += batch[: composition.new, 0].astype(int).tolist()
    assert len(used) == steps * composition.new
    for start in range(0, len(used) - n + 1, n):
        assert sorted(used[start : start + n]) == list(range(n))


@given(n=st.integers(1, 40), size=st.integers(1, 12), epochs=st.integers(1, 3))
def test_without_repeats_a_pattern_comes_once_an_epoch(n: int, size: int, epochs: int) -> None:
    feeding = Feeding(size, size, epochs, least_steps=50, repeats=False, replays=False)
    steps = feeding.steps(new=n, stored=5)
    per_epoch = -(-n // size)
    assert steps == epochs * per_epoch
    rng, seen = np.random.default_rng(0), list[int]()
    for step, (batch, targets) in enumerate(
        minibatches(patterns(n, 5), feeding, steps=steps, classes=CLASSES, rng=rng, out=room(size)),
        start=1,
    ):
        filled = size if step % per_epoch else n - (per_epoch - 1) * size
        check_aligned(batch, targets, filled)
        seen += targets[:filled].argmax(-1).tolist()
        if step % per_epoch == 0:
            assert sorted(seen) == list(range(n))
            seen.clear()


def test_without_repeats_the_memory_follows_the_new_patterns() -> None:
    """17 new and 17 stored in mini-batches of 10: 5 + 5, and finally 2 + 5 with 3 empty places."""
    feeding = Feeding(10, 5, 1, least_steps=1, repeats=False)
    filled = []
    for batch, targets in minibatches(
        patterns(17, 17),
        feeding,
        steps=4,
        classes=CLASSES,
        rng=np.random.default_rng(0),
        out=room(10),
    ):
        filled.append(int(targets.sum()))
        check_aligned(batch, targets, filled[-1])
    assert filled == [10, 10, 10, 7]


def test_without_replays_nothing_is_drawn() -> None:
    feeding = Feeding(4, 2, 1, least_steps=3, replays=False)
    rng, untouched = np.random.default_rng(0), np.random.default_rng(0)
    found = [
        batch.copy()
        for batch, _ in minibatches(
            patterns(4, 30), feeding, steps=3, classes=CLASSES, rng=rng, out=room(4)
        )
    ]
    assert all(sorted(batch[:, 0]) == [0, 1, 2, 3] for batch in found)
    # Three shuffles of the session and not one number more.
    for _ in range(3):
        untouched.permutation(4)
    assert rng.bit_generator.state == untouched.bit_generator.state


@given(
    n=st.integers(1, 40),
    stored=st.integers(0, 30),
    size=st.integers(1, 12),
    both=st.booleans(),
)
def test_gather_sees_each_pattern_exactly_once(n: int, stored: int, size: int, both: bool) -> None:
    gathers = SESSION_AND_MEMORY if both else SESSION
    feeding, given_ = Feeding(size, size, 1, 1, gathers=gathers), patterns(n, stored)
    seen: list[int] = []
    batches = 0
    for batch, targets, replayed in each_once(given_, feeding, classes=CLASSES, out=room(size)):
        filled = int(targets.sum())
        check_aligned(batch, targets, filled)
        seen += targets[:filled].argmax(-1).tolist()
        # New patterns have classes below 50, stored ones above.
        assert all((slot >= 50) == replayed for slot in targets[:filled].argmax(-1))
        batches += 1
    expected = [*range(n), *(range(50, 50 + stored) if both else ())]
    assert sorted(seen) == expected
    assert batches == gather_steps(given_, feeding)


def test_counts_have_every_pattern_once() -> None:
    memory = patterns(1, 3).memory  # classes 50, 51, 52
    found = Patterns(np.zeros((3, 1), np.float32), np.array([2, 51, 2], np.int32), memory)
    counts = found.counts(CLASSES)
    assert counts.dtype == np.float32
    assert counts.shape == (CLASSES,)
    assert {int(slot): counts[slot] for slot in np.flatnonzero(counts)} == {
        2: 2,
        50: 1,
        51: 2,
        52: 1,
    }


def test_a_list_of_frames_keeps_its_dtype() -> None:
    rng = np.random.default_rng(0)
    memory = ReplayMemory(4, LatentForm((2, 2, 3), BYTE, BYTE, (0.0, 255.0)))
    old = [np.full((2, 2, 3), value, np.uint8) for value in (1, 2)]
    memory.update(old, np.array([1, 2], np.int32), session=1, rng=rng)
    latents = [np.full((2, 2, 3), 0, np.uint8)]
    [(batch, targets)] = minibatches(
        Patterns(latents, np.zeros(1, np.int32), memory),
        Feeding(5, 1, 1, 1),
        steps=1,
        classes=3,
        rng=rng,
        out=np.empty((5, 2, 2, 3), np.uint8),
    )
    assert batch.dtype == np.uint8
    assert batch.shape == (5, 2, 2, 3)
    np.testing.assert_array_equal(batch[:, 1, 1, 2], targets.argmax(-1))
