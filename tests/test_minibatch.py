"""Mini-batches: full, aligned, in proportion, and fair to every new pattern."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from lrtflite.memory import ReplayMemory

from lrtflite.minibatch import Composition, minibatches


def test_the_papers_composition() -> None:
    # Section 5.1: 128 x 300 / 1800 = 21 new, 107 replayed; and the app's 20 + 100 of 100 frames.
    assert compose(128, 21, new=300, stored=1500) == Composition(21, 107)
    app = compose(120, 20, new=100, stored=500)
    assert app == Composition(20, 100)
    assert app.steps_per_epoch(100) == 5


def test_a_short_session_has_its_share_and_no_more() -> None:
    # 128 x 25 / 1525 = 2.1: once through the session is once through the memory, 13 x 126 = 1638.
    short = compose(128, 21, new=25, stored=1500)
    assert short == Composition(2, 126)
    assert short.steps_per_epoch(25) == 13
    assert compose(128, 21, new=1, stored=1500) == Composition(1, 127)


def test_a_small_memory_keeps_its_places_and_an_empty_one_cannot() -> None:
    assert compose(120, 20, new=100, stored=3) == Composition(20, 100)
    assert compose(120, 20, new=6, stored=6) == Composition(20, 100)
    assert compose(120, 20, new=100, stored=0) == Composition(120, 0)
    assert compose(8, 8, new=5, stored=1) == Composition(7, 1)


def test_something_is_replayed_wherever_there_is_room() -> None:
    # 8 x 90 / 91 rounds to 8; nothing but new patterns would forget the stored one.
    assert compose(8, 8, new=90, stored=1) == Composition(7, 1)
    assert compose(2, 2, new=4, stored=1) == Composition(1, 1)
    assert compose(1, 1, new=4, stored=1) == Composition(1, 0)


def compose(batch_size: int, new_per_batch: int, *, new: int, stored: int) -> Composition:
    return Composition.of(
        batch_size=batch_size, new_per_batch=new_per_batch, new=new, stored=stored
    )


@given(
    n=st.integers(1, 40),
    stored=st.integers(0, 30),
    new=st.integers(1, 12),
    seed=st.integers(0, 5),
)
def test_rows_are_aligned_and_new_patterns_take_turns(
    n: int, stored: int, new: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    slots, size = 100, 12
    memory = ReplayMemory(30, (1,))
    old = np.arange(50, 50 + stored, dtype=np.float32)[:, None]
    memory.update(old, old[:, 0].astype(np.int32), session=1, rng=rng)
    latents = np.arange(n, dtype=np.float32)[:, None]
    composition = compose(size, new, new=n, stored=stored)
    steps = 3 * composition.steps_per_epoch(n)
    used: list[int] = []
    for batch, targets in minibatches(
        latents,
        latents[:, 0].astype(np.int32),
        memory,
        composition=composition,
        steps=steps,
        slots=slots,
        rng=rng,
    ):
        assert batch.shape == (size, 1)
        np.testing.assert_array_equal(targets.sum(-1), 1)
        # A latent's value is its label here.
        np.testing.assert_array_equal(targets.argmax(-1), batch[:, 0])
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


def test_a_list_of_frames_keeps_its_dtype() -> None:
    rng = np.random.default_rng(0)
    memory = ReplayMemory(4, (2, 2, 3), dtype=np.uint8)
    old = [np.full((2, 2, 3), value, np.uint8) for value in (1, 2)]
    memory.update(old, np.array([1, 2], np.int32), session=1, rng=rng)
    latents = [np.full((2, 2, 3), 0, np.uint8)]
    [(batch, targets)] = minibatches(
        latents,
        np.zeros(1, np.int32),
        memory,
        composition=Composition(1, 4),
        steps=1,
        slots=3,
        rng=rng,
    )
    assert batch.dtype == np.uint8
    assert batch.shape == (5, 2, 2, 3)
    np.testing.assert_array_equal(batch[:, 1, 1, 2], targets.argmax(-1))
