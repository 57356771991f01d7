"""Properties of every policy in the table, over random streams with `forget` in between."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learning import TRAINING, latents_of
from lrtflite import Learner
from lrtflite.replay.codecs import LatentForm
from lrtflite.replay.memory import ReplayMemory
from lrtflite.replay.policies import POLICIES
from lrtflite.state.folder import read_state

pytestmark = pytest.mark.slow

FLOAT = np.dtype(np.float32)
TRIPLES = LatentForm((3,), FLOAT, FLOAT, (0.0, 1000.0))
CLASSES = 4

EVERY_POLICY = pytest.mark.parametrize("policy", list(POLICIES))
# Classes of a session's patterns; a negative number -k forgets class k - 1.
SESSIONS = st.lists(
    st.one_of(
        st.lists(st.integers(0, CLASSES - 1), min_size=1, max_size=25),
        st.integers(-CLASSES, -1),
    ),
    min_size=1,
    max_size=8,
)


def patterns(session: int, labels: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return latents that show their class, session and index, and their slots."""
    rows = [(label, session, index + 1) for index, label in enumerate(labels)]
    return np.array(rows, np.float32), np.array(labels, np.int32)


def run(policy: str, capacity: int, stream: list[list[int] | int], seed: int) -> ReplayMemory:
    memory, rng = ReplayMemory(capacity, TRIPLES, policy=policy), np.random.default_rng(seed)
    for session, content in enumerate(stream, start=1):
        if isinstance(content, int):
            memory.forget(-content - 1)
        else:
            memory.update(*patterns(session, content), session=session, rng=rng)
    return memory


@EVERY_POLICY
@given(st.integers(0, 20), SESSIONS, st.integers(0, 9))
def test_the_memory_is_full_aligned_and_without_repeats(
    policy: str, capacity: int, stream: list[list[int] | int], seed: int
) -> None:
    memory, rng = ReplayMemory(capacity, TRIPLES, policy=policy), np.random.default_rng(seed)
    for session, content in enumerate(stream, start=1):
        before = len(memory)
        if isinstance(content, int):
            gone = int((memory.slots == -content - 1).sum())
            memory.forget(-content - 1)
            assert len(memory) == before - gone
            assert -content - 1 not in memory.slots
        else:
            memory.update(*patterns(session, content), session=session, rng=rng)
            # `_check` in the memory refuses gaps and clashes. No policy wastes room.
            assert len(memory) == min(capacity, before + len(content))
        np.testing.assert_array_equal(memory.codes[:, 0], memory.slots)
        assert len(np.unique(memory.codes, axis=0)) == len(memory) == len(memory.marks)


@EVERY_POLICY
@given(st.integers(0, 20), SESSIONS, st.integers(0, 9))
def test_the_same_seed_keeps_the_same_patterns(
    policy: str, capacity: int, stream: list[list[int] | int], seed: int
) -> None:
    one, other = (run(policy, capacity, stream, seed) for _ in range(2))
    np.testing.assert_array_equal(one.codes, other.codes)
    np.testing.assert_array_equal(one.marks, other.marks)
    assert one.counter == other.counter


@EVERY_POLICY
@given(st.integers(0, 20), SESSIONS, SESSIONS, st.integers(0, 9))
def test_an_update_is_taken_back_with_its_marks(
    policy: str,
    capacity: int,
    stream: list[list[int] | int],
    last: list[list[int] | int],
    seed: int,
) -> None:
    memory, rng = run(policy, capacity, stream, seed), np.random.default_rng(seed)
    content = memory.content
    before = [memory.codes.copy(), memory.slots.copy(), memory.marks.copy()]
    counter = memory.counter
    if isinstance(last[0], int):
        memory.forget(-last[0] - 1)
    else:
        memory.update(*patterns(99, last[0]), session=99, rng=rng)
    memory.content = content
    for now, then in zip([memory.codes, memory.slots, memory.marks], before):
        np.testing.assert_array_equal(now, then)
    assert memory.counter == counter


def fair_level(available: np.ndarray, capacity: int) -> int:
    """Return the largest share L for which min(available, L) of every class fit, by counting up."""
    level = 0
    while np.minimum(available, level + 1).sum() <= capacity and level < available.max():
        level += 1
    return level


@pytest.mark.parametrize("policy", ["herding", "fresh"])
@given(st.integers(0, 20), SESSIONS, st.integers(0, 9))
def test_shares_differ_by_one_at_most(
    policy: str, capacity: int, stream: list[list[int] | int], seed: int
) -> None:
    """Every class has min(available, L) patterns, and what is left is one each."""
    memory, rng = ReplayMemory(capacity, TRIPLES, policy=policy), np.random.default_rng(seed)
    for session, content in enumerate(stream, start=1):
        if isinstance(content, int):
            memory.forget(-content - 1)
            continue
        available = np.bincount([*memory.slots, *content], minlength=CLASSES)
        memory.update(*patterns(session, content), session=session, rng=rng)
        held = np.bincount(memory.slots, minlength=CLASSES)
        level = fair_level(available, capacity)
        extra = held - np.minimum(available, level)
        assert extra.min() >= 0
        assert extra.max() <= 1


def test_a_class_that_lacks_patterns_leaves_its_share_to_the_others() -> None:
    """12 rows for 2, 9 and 9 patterns: 2, 5 and 5. The thirteenth goes to the lower slot."""
    labels = [0] * 2 + [1] * 9 + [2] * 9
    for policy in ("herding", "fresh"):
        for capacity, expected in ((12, [2, 5, 5]), (13, [2, 6, 5])):
            memory = ReplayMemory(capacity, TRIPLES, policy=policy)
            memory.update(*patterns(1, labels), session=1, rng=np.random.default_rng(0))
            assert np.bincount(memory.slots).tolist() == expected


@EVERY_POLICY
def test_marks_and_counter_survive_closing_and_undo(
    policy: str, open_learner: Callable[..., Learner], tmp_path: Path
) -> None:
    kept = []
    for kind in (0, 1, 0):
        with open_learner(tmp_path, policy=policy, replay_size=30) as learner:
            learner.learn_latents(latents_of(kind, 20), f"kind {kind}", training=TRAINING)
            kept.append((learner.memory.marks.tolist(), learner.memory.counter))
            assert read_state(tmp_path).memory.facts["marks"].tolist() == kept[-1][0]
    with open_learner(tmp_path) as learner:
        assert (learner.memory.marks.tolist(), learner.memory.counter) == kept[2]
        learner.undo()
        assert (learner.memory.marks.tolist(), learner.memory.counter) == kept[1]


@pytest.mark.parametrize("policy", ["reservoir", "herding"])
def test_another_policy_starts_without_marks_and_counter(
    policy: str, open_learner: Callable[..., Learner], tmp_path: Path
) -> None:
    with open_learner(tmp_path, policy=policy, replay_size=30) as learner:
        learner.learn_latents(latents_of(0, 40), "cup", training=TRAINING)
        assert learner.memory.marks.any() or learner.memory.counter
    with open_learner(tmp_path, policy="fresh", replay_size=30) as learner:
        assert len(learner.memory) == 30
        assert not learner.memory.marks.any()
        assert learner.memory.counter == 0
        learner.learn_latents(latents_of(1, 40), "mug", training=TRAINING)
        assert np.bincount(learner.memory.slots).tolist() == [15, 15]
        np.testing.assert_array_equal(learner.memory.marks, 2 * learner.memory.slots)


def test_forget_moves_a_mark_with_its_row() -> None:
    memory = ReplayMemory(6, TRIPLES, policy="fresh")
    rng = np.random.default_rng(0)
    for session, label in enumerate([0, 1, 2], start=1):
        memory.update(*patterns(session, [label, label]), session=session, rng=rng)
    memory.forget(0)
    np.testing.assert_array_equal(memory.marks, memory.codes[:, 1])
    assert sorted(memory.marks.tolist()) == [2, 2, 3, 3]
