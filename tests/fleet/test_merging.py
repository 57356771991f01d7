"""Merging a fleet: the merged state answers as one device that saw everything."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet_learning import (
    HALL,
    KITCHEN,
    LABELS,
    OFFICE,
    assert_same_answers,
    assert_same_sums,
    forget,
    refused,
    sums,
    teach,
    teach_fleet,
)
from learning import alike_latents
from lrtflite import Learner
from lrtflite.errors import InputError
from lrtflite.fleet.merge import merge
from lrtflite.state.folder import read_state


@pytest.fixture
def fleet(lda: Path, tmp_path: Path) -> list[Path]:
    """The states `kitchen`, `office` and `hall`."""
    return teach_fleet(lda, tmp_path)


def test_a_fleet_is_one_device_that_saw_everything(
    lda: Path, fleet: list[Path], tmp_path: Path, runtime: str
) -> None:
    one = teach(lda, tmp_path / "one", *HALL, *reversed(OFFICE), *KITCHEN)
    merged = merge(lda, fleet, tmp_path / "merged", runtime=runtime)
    assert_same_sums(merged.out, one, *LABELS)
    assert_same_answers(merged.out, one, *LABELS)
    assert merged.history.patterns == {"mug": 60, "pan": 40, "pen": 20, "book": 20, "hat": 20}
    with Learner.open(lda, merged.out) as learner:
        # The first device's slots, then free ones.
        assert learner.labels == ("mug", "pan", "pen", "book", "hat", None)
        assert learner.learned == LABELS
        assert learner.sessions == 8
        assert learner.predict_latents(alike_latents(2, 9), top=1)[0][0].label == "pen"


def test_any_order_of_devices_gives_the_same_answers(
    lda: Path, fleet: list[Path], tmp_path: Path
) -> None:
    one = merge(lda, fleet, tmp_path / "forwards").out
    other = merge(lda, fleet[::-1], tmp_path / "backwards").out
    assert read_state(other).meta.labels[:2] == ("hat", "pan")
    assert_same_sums(one, other, *LABELS)
    assert_same_answers(one, other, *LABELS)


def test_a_fleet_can_be_merged_in_steps(lda: Path, fleet: list[Path], tmp_path: Path) -> None:
    at_once = merge(lda, fleet, tmp_path / "at once").out
    two = merge(lda, fleet[:2], tmp_path / "two").out
    assert_same_sums(merge(lda, [two, fleet[2]], tmp_path / "steps").out, at_once, *LABELS)


@settings(max_examples=12)
@given(owners=st.lists(st.integers(0, 2), min_size=8, max_size=8), order=st.permutations(range(8)))
def test_any_split_over_devices_gives_the_same_sums(
    lda: Path, owners: list[int], order: list[int]
) -> None:
    sessions = [*KITCHEN, *OFFICE, *HALL]
    with TemporaryDirectory() as folder:
        states = []
        for owner in range(3):
            mine = [sessions[k] for k in order if owners[k] == owner]
            states.append(teach(lda, Path(folder, f"device {owner}"), *mine))
        merged = merge(lda, states, Path(folder, "merged")).out
        one = teach(lda, Path(folder, "one"), *sessions)
        assert_same_sums(merged, one, *LABELS)


def test_the_merged_state_learns_on(lda: Path, fleet: list[Path], tmp_path: Path) -> None:
    merged = merge(lda, fleet, tmp_path / "merged").out
    one = teach(lda, tmp_path / "one", *KITCHEN, *OFFICE, *HALL, ("key", 5, 5))
    teach(lda, merged, ("key", 5, 5))
    assert_same_answers(merged, one, *LABELS, "key")
    assert read_state(merged).meta.sessions == 9


def test_the_generator_comes_from_the_seed(lda: Path, fleet: list[Path], tmp_path: Path) -> None:
    states = [merge(lda, fleet, tmp_path / str(k), seed=k // 2).state for k in range(3)]
    assert states[0].meta.rng == states[1].meta.rng != states[2].meta.rng
    rows = [state.memory.rows.all().tobytes() for state in states]
    assert rows[0] == rows[1] != rows[2]


def test_memories_are_joined_and_balanced(lda: Path, fleet: list[Path], tmp_path: Path) -> None:
    state = merge(lda, fleet, tmp_path / "merged").state
    # 160 patterns and room for 100.
    slots, codes = state.memory.facts["slots"], state.memory.rows.all()
    labels = np.array(state.meta.labels)[slots]
    assert {label: int((labels == label).sum()) for label in LABELS} == dict.fromkeys(LABELS, 20)
    for label, kind in (("pen", 2), ("book", 3)):
        taught = {latent.tobytes() for latent in alike_latents(kind, 3)}
        assert {code.tobytes() for code in codes[labels == label]} == taught


def test_a_class_that_one_device_forgot(lda: Path, fleet: list[Path], tmp_path: Path) -> None:
    before = sums(merge(lda, fleet, tmp_path / "before").out, *LABELS)
    forget(lda, fleet[0], "mug")
    merged = merge(lda, fleet, tmp_path / "merged")
    assert merged.history.patterns["mug"] == 20
    found = sums(merged.out, *LABELS)
    assert found["class_counts"].tolist() == [20, 40, 20, 20, 20]
    # What the device learned of the spread within classes stays.
    assert found["pattern_count"] == before["pattern_count"] == 160


def test_drop_takes_a_device_out_again(lda: Path, fleet: list[Path], tmp_path: Path) -> None:
    merged = merge(lda, fleet, tmp_path / "merged").out
    dropped = merge(lda, [merged], tmp_path / "dropped", drop=[fleet[1]])
    two = teach(lda, tmp_path / "two", *KITCHEN, *HALL)
    assert_same_sums(dropped.out, two, "mug", "pan", "hat")
    assert_same_answers(dropped.out, two, "mug", "pan", "hat")
    # Labels that nobody else taught are free, in the place that they had.
    assert dropped.state.meta.labels == ("mug", "pan", None, None, "hat", None)
    assert dropped.state.meta.learned == (True, True, False, False, True, False)
    assert dropped.history.sessions == 5
    taught = {
        latent.tobytes() for day in ((2, 3), (0, 3), (3, 3)) for latent in alike_latents(*day)
    }
    assert not taught & {code.tobytes() for code in dropped.state.memory.rows.all()}
    # And in again.
    again = merge(lda, [dropped.out, fleet[1]], tmp_path / "again").out
    assert_same_sums(again, merged, *LABELS)


def test_a_device_that_learned_on_replaces_its_former_self(
    lda: Path, fleet: list[Path], tmp_path: Path
) -> None:
    merged = merge(lda, fleet, tmp_path / "merged").out
    former = shutil.copytree(fleet[1], tmp_path / "former")
    teach(lda, fleet[1], ("key", 5, 6))
    said = f"got {merged} and {fleet[1]}, which have 3 sessions in common; merge each device once"
    refused(InputError, said, lambda out: merge(lda, [merged, fleet[1]], out), tmp_path / "new")
    new = merge(lda, [merged, fleet[1]], tmp_path / "new", drop=[former]).out
    one = teach(lda, tmp_path / "one", *KITCHEN, *OFFICE, *HALL, ("key", 5, 6))
    assert_same_sums(new, one, *LABELS, "key")
    state = read_state(new)
    assert state.meta.sessions == len({entry["id"] for entry in state.meta.history}) == 9
    labels = np.array(state.meta.labels)[state.memory.facts["slots"]]
    assert {"pen", "book", "key"} < set(labels)
