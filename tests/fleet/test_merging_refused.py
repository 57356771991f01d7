"""States that cannot be merged: one line says why, and nothing is written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from fleet_learning import (
    forget,
    refused,
    rename,
    teach,
    teach_fleet,
)
from learning import TRAINING, latents_of
from lrtflite import Learner
from lrtflite.bundle.bundle import Bundle
from lrtflite.errors import BundleError, InputError, StateError
from lrtflite.fleet.merge import merge


@pytest.fixture(autouse=True, params=["in full", "folded"])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep every session in full, or fold all but the newest."""
    if request.param == "folded":
        monkeypatch.setattr("lrtflite.state.history.BLOCK", 1)


@pytest.fixture
def fleet(lda: Path, tmp_path: Path) -> list[Path]:
    """The states `kitchen`, `office` and `hall`."""
    return teach_fleet(lda, tmp_path)


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
    said = f"got {empty} with no sessions of its own"
    refused(InputError, said, lambda out: merge(lda, [merged], out, drop=[empty]), out)
    forget(lda, merged, "mug")
    said = f"Expected {fleet[0]} as it was merged .* has since been renamed or forgotten"
    refused(InputError, said, lambda out: merge(lda, [merged], out, drop=[fleet[0]]), out)


def test_sessions_in_common_are_refused(lda: Path, fleet: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    said = f"got {fleet[0]} and {fleet[0]}, which are one folder"
    refused(InputError, said, lambda out: merge(lda, [fleet[0], fleet[0]], out), out)
    copy = shutil.copytree(fleet[0], tmp_path / "copy")
    rename(lda, copy, "mug", "cup")
    said = f"got {fleet[0]} and {copy}, which have 3 sessions in common"
    refused(InputError, said, lambda out: merge(lda, [*fleet, copy], out), out)


def test_states_that_are_too_few(lda: Path, fleet: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    said = "at least two states to merge, or one and --drop, got "
    refused(InputError, said + "none", lambda out: merge(lda, [], out), out)
    refused(InputError, said + "1", lambda out: merge(lda, fleet[:1], out), out)
    said = "got .*nowhere, which does not exist"
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
    said = rf"\(lda, pool6\), got {tmp_path / 'cwr'} from another bundle \(another strategy"
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
    assert merge(lda, [*fleet, more], tmp_path / "out").state.meta.labels[5] == "key"


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

    monkeypatch.setattr("lrtflite.state.writing.write_tensors", full)
    refused(StateError, "No space left", lambda out: merge(lda, fleet, out), tmp_path / "out")
