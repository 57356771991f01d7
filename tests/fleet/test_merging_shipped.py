"""Merging devices of a bundle that shipped with classes: these count once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fleet_learning import (
    KITCHEN,
    TeachingReport,
    assert_same_answers,
    assert_same_sums,
    forget,
    refused,
    rename,
    sums,
    teach,
)
from lrtflite import Learner
from lrtflite.errors import InputError
from lrtflite.fleet.merge import merge
from lrtflite.state.folder import read_state


@pytest.fixture(autouse=True, params=["in full", "folded"])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep every session in full, or fold all but the newest."""
    if request.param == "folded":
        monkeypatch.setattr("lrtflite.state.history.BLOCK", 1)


def test_what_a_bundle_shipped_with_counts_once(lda: Path, tmp_path: Path) -> None:
    with Learner.open(lda, teach(lda, tmp_path / "desk", *KITCHEN)) as desk:
        shipped = desk.ship(tmp_path / "shipped").path
    states = [
        teach(shipped, tmp_path / "a", ("pen", 2, 3), ("mug", 0, 3)),
        teach(shipped, tmp_path / "b", ("hat", 4, 4)),
        teach(shipped, tmp_path / "c"),
        # Started without what was shipped: the models are the same.
        teach(lda, tmp_path / "d", ("pan", 1, 5)),
    ]
    merged = merge(shipped, states, tmp_path / "merged")
    more: list[TeachingReport] = [("pen", 2, 3), ("mug", 0, 3), ("hat", 4, 4), ("pan", 1, 5)]
    one = teach(lda, tmp_path / "one", *KITCHEN, *more)
    labels = ("mug", "pan", "pen", "hat")
    assert_same_sums(merged.out, one, *labels)
    assert_same_answers(merged.out, one, *labels)
    assert (merged.shipped.sessions, merged.history.sessions) == (3, 7)
    assert [device.own.sessions for device in merged.devices] == [2, 1, 0, 1]
    # Each latent once in the memory, too.
    codes = merged.state.memory.rows.all()
    assert len({code.tobytes() for code in codes}) == len(codes) == 100
    # Without the bundle's own sessions, its devices have sessions in common.
    said = f"got {states[0]} and {states[1]}, which have 3 sessions in common; .* it started from"
    refused(InputError, said, lambda out: merge(lda, states[:2], out), tmp_path / "x")


@pytest.fixture
def shipped_fleet(lda: Path, tmp_path: Path) -> tuple[Path, list[Path]]:
    """A bundle that ships with mug and pan, and three devices that were taught a day each."""
    with Learner.open(lda, teach(lda, tmp_path / "desk", ("mug", 0, 1), ("pan", 1, 1))) as desk:
        shipped = desk.ship(tmp_path / "shipped").path
    days = {"a": ("pen", 2, 3), "b": ("book", 3, 3), "c": ("hat", 4, 3)}
    return shipped, [teach(shipped, tmp_path / name, day) for name, day in days.items()]


def test_a_shipped_class_stays_while_one_device_knows_it(
    shipped_fleet: tuple[Path, list[Path]], tmp_path: Path
) -> None:
    shipped, states = shipped_fleet
    expected = merge(shipped, states, tmp_path / "expected").out
    forget(shipped, states[0], "mug")
    forget(shipped, states[1], "mug")
    # A device whose first slot is taken by something else meanwhile.
    teach(shipped, states[0], ("hat", 4, 5))
    assert read_state(states[0]).meta.labels[0] == "hat"
    merged = merge(shipped, states, tmp_path / "merged")
    assert merged.history.patterns == {"mug": 20, "pan": 20, "pen": 20, "book": 20, "hat": 40}
    labels = ("mug", "pan", "pen", "book")
    found, before = sums(merged.out, *labels), sums(expected, *labels)
    np.testing.assert_allclose(found["class_sums"], before["class_sums"], atol=1e-5)
    np.testing.assert_array_equal(found["class_counts"], before["class_counts"])
    assert found["pattern_count"] == before["pattern_count"] + 20
    # The merged state can be merged on: its mug is in another slot than the bundle's.
    more = merge(
        shipped, [merged.out, teach(shipped, tmp_path / "d", ("mug", 0, 7))], tmp_path / "e"
    )
    assert sums(more.out, "mug", "hat")["class_counts"].tolist() == [40, 40]


def test_a_shipped_class_that_every_device_forgot_is_forgotten(
    shipped_fleet: tuple[Path, list[Path]], tmp_path: Path
) -> None:
    shipped, states = shipped_fleet
    merged = merge(shipped, states, tmp_path / "merged").out
    forget(shipped, merged, "mug")
    for state in states:
        forget(shipped, state, "mug")
    after = merge(shipped, states, tmp_path / "after").out
    assert "mug" not in read_state(after).meta.labels
    assert_same_sums(after, merged, "pan", "pen", "book", "hat")


def test_a_shipped_class_has_one_name(
    shipped_fleet: tuple[Path, list[Path]], tmp_path: Path
) -> None:
    shipped, states = shipped_fleet
    rename(shipped, states[1], "mug", "cup")
    said = f"got 'mug' in {states[0]} and 'cup' in {states[1]}; rename one"
    refused(InputError, said, lambda out: merge(shipped, states, out), tmp_path / "merged")
    for state in (states[0], states[2]):
        rename(shipped, state, "mug", "cup")
    merged = merge(shipped, states, tmp_path / "merged")
    assert merged.history.patterns["cup"] == 20
    assert "mug" not in merged.state.meta.labels
    assert sums(merged.out, "cup")["class_counts"] == [20]


def test_drop_keeps_what_the_bundle_shipped_with(
    shipped_fleet: tuple[Path, list[Path]], tmp_path: Path
) -> None:
    shipped, states = shipped_fleet
    merged = merge(shipped, states, tmp_path / "merged").out
    dropped = merge(shipped, [merged], tmp_path / "dropped", drop=[states[2]])
    expected = merge(shipped, states[:2], tmp_path / "expected").out
    assert_same_sums(dropped.out, expected, "mug", "pan", "pen", "book")
    assert len(dropped.state.memory.facts["slots"]) == 80
