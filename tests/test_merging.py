"""Merging a fleet: the merged state answers as one device that saw everything."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet_learning import Taught, assert_same_answers, assert_same_sums, sums, teach
from learning import TRAINING, alike_latents, latents_of
from lrtflite import Learner
from lrtflite.bundle import Bundle
from lrtflite.checkpoint import newest_state
from lrtflite.errors import BundleError, InputError, LrtfliteError, StateError
from lrtflite.merging import merge

# Three devices with classes in common and classes of their own, in different orders.
KITCHEN: list[Taught] = [("mug", 0, 1), ("pan", 1, 1), ("mug", 0, 2)]
OFFICE: list[Taught] = [("pen", 2, 3), ("mug", 0, 3), ("book", 3, 3)]
HALL: list[Taught] = [("hat", 4, 4), ("pan", 1, 4)]
LABELS = ("mug", "pan", "pen", "book", "hat")


@pytest.fixture
def fleet(lda: Path, tmp_path: Path) -> list[Path]:
    """The states `kitchen`, `office` and `hall`."""
    devices = {"kitchen": KITCHEN, "office": OFFICE, "hall": HALL}
    return [teach(lda, tmp_path / name, *sessions) for name, sessions in devices.items()]


def forget(bundle: Path, state: Path, label: str) -> None:
    with Learner.open(bundle, state) as learner:
        learner.forget(label)


def rename(bundle: Path, state: Path, label: str, new: str) -> None:
    with Learner.open(bundle, state) as learner:
        learner.rename(label, new)


def refused(kind: type[LrtfliteError], said: str, run: Callable[[Path], object], out: Path) -> None:
    """The error is one line that says `said`, and nothing is written."""
    before = sorted(out.parent.iterdir())
    with pytest.raises(kind, match=said) as caught:
        run(out)
    assert len(str(caught.value).splitlines()) == 1
    assert sorted(out.parent.iterdir()) == before


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
    assert newest_state(other).meta["labels"][:2] == ["hat", "pan"]
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
    assert newest_state(merged).meta["sessions"] == 9


def test_the_generator_comes_from_the_seed(lda: Path, fleet: list[Path], tmp_path: Path) -> None:
    states = [merge(lda, fleet, tmp_path / str(k), seed=k // 2).state for k in range(3)]
    assert states[0].meta["rng"] == states[1].meta["rng"] != states[2].meta["rng"]
    rows = [state.arrays["memory/codes"].tobytes() for state in states]
    assert rows[0] == rows[1] != rows[2]


def test_memories_are_joined_and_balanced(lda: Path, fleet: list[Path], tmp_path: Path) -> None:
    state = merge(lda, fleet, tmp_path / "merged").state
    # 160 patterns and room for 100.
    slots, codes = state.arrays["memory/slots"], state.arrays["memory/codes"]
    labels = np.array(state.meta["labels"])[slots]
    assert {label: int((labels == label).sum()) for label in LABELS} == dict.fromkeys(LABELS, 20)
    for label, kind in (("pen", 2), ("book", 3)):
        taught = {latent.tobytes() for latent in alike_latents(kind, 3)}
        assert {code.tobytes() for code in codes[labels == label]} == taught


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
    more: list[Taught] = [("pen", 2, 3), ("mug", 0, 3), ("hat", 4, 4), ("pan", 1, 5)]
    one = teach(lda, tmp_path / "one", *KITCHEN, *more)
    labels = ("mug", "pan", "pen", "hat")
    assert_same_sums(merged.out, one, *labels)
    assert_same_answers(merged.out, one, *labels)
    assert (merged.shipped.sessions, merged.history.sessions) == (3, 7)
    assert [device.own.sessions for device in merged.devices] == [2, 1, 0, 1]
    # Each latent once in the memory, too.
    codes = merged.state.arrays["memory/codes"]
    assert len({code.tobytes() for code in codes}) == len(codes) == 100
    # Without the bundle's own sessions, its devices have sessions in common.
    said = f"got {states[0]} and {states[1]}, which share 3; .* with the bundle that it started"
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
    assert newest_state(states[0]).meta["labels"][0] == "hat"
    merged = merge(shipped, states, tmp_path / "merged")
    assert merged.history.patterns == {"mug": 20, "pan": 20, "pen": 20, "book": 20, "hat": 40}
    labels = ("mug", "pan", "pen", "book")
    found, before = sums(merged.out, *labels), sums(expected, *labels)
    np.testing.assert_allclose(found["class_sums"], before["class_sums"], atol=1e-5)
    np.testing.assert_array_equal(found["class_counts"], before["class_counts"])
    assert found["patterns"] == before["patterns"] + 20
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
    assert "mug" not in newest_state(after).meta["labels"]
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
    assert "mug" not in merged.state.meta["labels"]
    assert sums(merged.out, "cup")["class_counts"] == [20]


def test_a_class_that_one_device_forgot(lda: Path, fleet: list[Path], tmp_path: Path) -> None:
    before = sums(merge(lda, fleet, tmp_path / "before").out, *LABELS)
    forget(lda, fleet[0], "mug")
    merged = merge(lda, fleet, tmp_path / "merged")
    assert merged.history.patterns["mug"] == 20
    found = sums(merged.out, *LABELS)
    assert found["class_counts"].tolist() == [20, 40, 20, 20, 20]
    # What the device learned of the spread within classes stays.
    assert found["patterns"] == before["patterns"] == 160


def test_drop_takes_a_device_out_again(lda: Path, fleet: list[Path], tmp_path: Path) -> None:
    merged = merge(lda, fleet, tmp_path / "merged").out
    dropped = merge(lda, [merged], tmp_path / "dropped", drop=[fleet[1]])
    two = teach(lda, tmp_path / "two", *KITCHEN, *HALL)
    assert_same_sums(dropped.out, two, "mug", "pan", "hat")
    assert_same_answers(dropped.out, two, "mug", "pan", "hat")
    # Labels that nobody else taught are free, in the place that they had.
    assert dropped.state.meta["labels"] == ["mug", "pan", None, None, "hat", None]
    assert dropped.state.meta["learned"] == [True, True, False, False, True, False]
    assert dropped.history.sessions == 5
    taught = {
        latent.tobytes() for day in ((2, 3), (0, 3), (3, 3)) for latent in alike_latents(*day)
    }
    assert not taught & {code.tobytes() for code in dropped.state.arrays["memory/codes"]}
    # And in again.
    again = merge(lda, [dropped.out, fleet[1]], tmp_path / "again").out
    assert_same_sums(again, merged, *LABELS)


def test_a_device_that_learned_on_replaces_its_former_self(
    lda: Path, fleet: list[Path], tmp_path: Path
) -> None:
    merged = merge(lda, fleet, tmp_path / "merged").out
    former = shutil.copytree(fleet[1], tmp_path / "former")
    teach(lda, fleet[1], ("key", 5, 6))
    said = f"got {merged} and {fleet[1]}, which share 3; merge each device once"
    refused(InputError, said, lambda out: merge(lda, [merged, fleet[1]], out), tmp_path / "new")
    new = merge(lda, [merged, fleet[1]], tmp_path / "new", drop=[former]).out
    one = teach(lda, tmp_path / "one", *KITCHEN, *OFFICE, *HALL, ("key", 5, 6))
    assert_same_sums(new, one, *LABELS, "key")
    state = newest_state(new)
    assert state.meta["sessions"] == len({entry["id"] for entry in state.meta["history"]}) == 9
    labels = np.array(state.meta["labels"])[state.arrays["memory/slots"]]
    assert {"pen", "book", "key"} < set(labels)


def test_drop_keeps_what_the_bundle_shipped_with(
    shipped_fleet: tuple[Path, list[Path]], tmp_path: Path
) -> None:
    shipped, states = shipped_fleet
    merged = merge(shipped, states, tmp_path / "merged").out
    dropped = merge(shipped, [merged], tmp_path / "dropped", drop=[states[2]])
    expected = merge(shipped, states[:2], tmp_path / "expected").out
    assert_same_sums(dropped.out, expected, "mug", "pan", "pen", "book")
    assert len(dropped.state.arrays["memory/slots"]) == 80


def test_drop_of_what_is_not_there(lda: Path, fleet: list[Path], tmp_path: Path) -> None:
    merged = merge(lda, fleet[:2], tmp_path / "merged").out
    out = tmp_path / "out"
    said = f"whose sessions are all in {merged}, got {fleet[2]} with 2 that are not; drop the state"
    refused(InputError, said, lambda out: merge(lda, [merged], out, drop=[fleet[2]]), out)
    said = "got all of its sessions; nothing would be left"
    refused(InputError, said, lambda out: merge(lda, [merged], out, drop=[merged]), out)
    said = "which are one folder; drop each device once"
    twice = [fleet[0], fleet[0]]
    refused(InputError, said, lambda out: merge(lda, [merged], out, drop=twice), out)
    empty = teach(lda, tmp_path / "empty")
    said = f"got {empty} with none of its own"
    refused(InputError, said, lambda out: merge(lda, [merged], out, drop=[empty]), out)
    forget(lda, merged, "mug")
    said = f"Expected {fleet[0]} as it was merged .* renamed or forgotten since"
    refused(InputError, said, lambda out: merge(lda, [merged], out, drop=[fleet[0]]), out)


def test_sessions_in_common_are_refused(lda: Path, fleet: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    said = f"got {fleet[0]} and {fleet[0]}, which are one folder"
    refused(InputError, said, lambda out: merge(lda, [fleet[0], fleet[0]], out), out)
    copy = shutil.copytree(fleet[0], tmp_path / "copy")
    rename(lda, copy, "mug", "cup")
    said = f"got {fleet[0]} and {copy}, which share 3"
    refused(InputError, said, lambda out: merge(lda, [*fleet, copy], out), out)


def test_states_that_are_too_few(lda: Path, fleet: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    said = "at least two states to merge, or one and --drop, got "
    refused(InputError, said + "none", lambda out: merge(lda, [], out), out)
    refused(InputError, said + "1", lambda out: merge(lda, fleet[:1], out), out)
    said = "got .*nowhere with no state"
    refused(StateError, said, lambda out: merge(lda, [fleet[0], tmp_path / "nowhere"], out), out)


def test_an_out_that_exists(lda: Path, fleet: list[Path], tmp_path: Path) -> None:
    content = sorted(path.name for path in fleet[2].iterdir())
    refused(StateError, "which exists", lambda _: merge(lda, fleet[:2], fleet[2]), tmp_path / "x")
    assert sorted(path.name for path in fleet[2].iterdir()) == content
    refused(StateError, "Cannot write", lambda _: merge(lda, fleet, "/dev/null/x"), tmp_path / "x")


def test_states_of_other_bundles(lda: Path, demo: Path, fleet: list[Path], tmp_path: Path) -> None:
    with Learner.open(demo, tmp_path / "cwr") as learner:
        learner.learn_latents(latents_of(0), "mug", training=TRAINING)
    out = tmp_path / "out"
    said = rf"\(lda, pool6\), got {tmp_path / 'cwr'} of another bundle \(another strategy"
    refused(StateError, said, lambda out: merge(lda, [fleet[0], tmp_path / "cwr"], out), out)
    said = "strategy cwr cannot be merged: cw, past depend on the order .* --strategy lda"
    refused(InputError, said, lambda out: merge(demo, fleet, out), out)


def test_too_many_labels_say_how_many_classes_are_needed(
    lda: Path, fleet: list[Path], tmp_path: Path
) -> None:
    more = teach(lda, tmp_path / "more", ("key", 5, 1), ("jar", 6, 1), ("mug", 0, 9))
    said = "at most 6 labels in all states together, got 7; .* --classes 7 for"
    refused(InputError, said, lambda out: merge(lda, [*fleet, more], out), tmp_path / "out")
    forget(lda, more, "jar")
    assert merge(lda, [*fleet, more], tmp_path / "out").state.meta["labels"][5] == "key"


def with_manifest(bundle: Path, out: Path, **changes: object) -> Path:
    shutil.copytree(bundle, out)
    found = json.loads((out / "manifest.json").read_text())
    (out / "manifest.json").write_text(json.dumps({**found, **changes}))
    return out


def test_the_manifest_decides(lda: Path, fleet: list[Path], tmp_path: Path) -> None:
    rules = dict(Bundle.open(lda).manifest.merging)
    assert rules["class_sums"] == rules["class_counts"] == "sum by class"
    assert {name for name, rule in rules.items() if rule == "solve"} == {
        "weights",
        "bias",
        "temperature",
    }
    out = tmp_path / "out"
    fixed = with_manifest(lda, tmp_path / "fixed", merging={**rules, "squares": "refuse"})
    said = "strategy lda cannot be merged: squares depend"
    refused(InputError, said, lambda out: merge(fixed, fleet, out), out)
    silent = with_manifest(lda, tmp_path / "silent", merging={})
    refused(InputError, "and 5 more depend", lambda out: merge(silent, fleet, out), out)
    odd = with_manifest(lda, tmp_path / "odd", merging={**rules, "squares": "sum by class"})
    said = "Expected 6 rows in squares, which merges by class, got 256"
    refused(BundleError, said, lambda out: merge(odd, fleet, out), out)
    moving = with_manifest(lda, tmp_path / "moving", adapt_moments=True)
    refused(InputError, "moments below", lambda out: merge(moving, fleet, out), out)


def test_a_full_disk_leaves_nothing(
    lda: Path, fleet: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("lrtflite.checkpoint.write_state", full)
    refused(StateError, "No space left", lambda out: merge(lda, fleet, out), tmp_path / "out")
