"""Bundles and states of every past format are read and upgraded, or refused by number."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lrtflite import Bundle, Learner
from lrtflite.bundle.bundle import write_manifest
from lrtflite.bundle.manifest import BUNDLE_FORMAT, BUNDLE_FORMATS
from lrtflite.errors import BundleError, StateError
from lrtflite.files.reading import FileSource
from lrtflite.files.tensors import DIGEST, Outgoing, TensorFile, write_tensors
from lrtflite.state.record import STATE_FORMAT, STATE_FORMATS
from lrtflite.state.summary import summarise
from lrtflite.verification.verify import verify_bundle

HERE = Path(__file__).parent
# The frames that every state has learned, as `make.py` drew them.
FRAMES = np.random.default_rng(0).integers(0, 256, (2, 5, 32, 32, 3)).astype(np.uint8)
# The bundle whose models each state was made with, and the number of its sessions.
MADE_WITH = {4: ("bundle-6", 1), 5: ("bundle-6", 1), 6: ("bundle-7", 5)}


def number(path: Path) -> int:
    return int(path.name.rpartition("-")[2])


def read_states() -> list[Path]:
    return [path for path in sorted(HERE.glob("state-*")) if number(path) in STATE_FORMATS]


@pytest.mark.parametrize("path", sorted(HERE.glob("bundle-*")), ids=lambda path: path.name)
def test_a_bundle_verifies_or_is_refused_by_number(path: Path, runtime: str) -> None:
    if number(path) in BUNDLE_FORMATS:
        checks = verify_bundle(path, runtime=runtime)
        assert [check for check in checks if not check.passed] == []
    else:
        with pytest.raises(BundleError, match=f"got format {number(path)} "):
            Bundle.open(path)


def test_a_bundle_of_an_earlier_format_is_written_in_the_present_one(tmp_path: Path) -> None:
    manifest = Bundle.open(HERE / "bundle-6").manifest
    assert manifest.format == 6
    write_manifest(tmp_path, manifest)
    assert json.loads((tmp_path / "manifest.json").read_text())["format"] == BUNDLE_FORMAT


def test_texts_about_a_bundle_are_read() -> None:
    manifest = Bundle.open(HERE / "bundle-7").manifest
    about = (manifest.name, manifest.version, manifest.created, manifest.replaces)
    assert about == ("pinned", "1.0", "2026-11-18", "0.9")


def assert_taught(learner: Learner, sessions: int) -> None:
    assert learner.learned == ("mug", "hat")
    assert (learner.sessions, len(learner.memory), learner.memory.capacity) == (sessions, 6, 6)
    answers = [[p.label for p in learner.predict(frame, top=1)[0]] for frame in FRAMES[:, 0]]
    assert answers == [["mug"], ["hat"]]


@pytest.mark.parametrize("path", sorted(HERE.glob("state-*")), ids=lambda path: path.name)
def test_a_state_opens_or_is_refused_by_number(path: Path, tmp_path: Path) -> None:
    state = shutil.copytree(path, tmp_path / "state")
    bundle, sessions = MADE_WITH[number(path)]
    if number(path) not in STATE_FORMATS:
        with pytest.raises(StateError, match=f"got format {number(path)} "):
            Learner.open(HERE / bundle, state)
        return
    with Learner.open(HERE / bundle, state) as learner:
        assert_taught(learner, sessions)
        assert sum(learner.committed.history.patterns.values()) == 10 * sessions


@pytest.mark.parametrize("path", read_states(), ids=lambda path: path.name)
def test_a_state_is_upgraded_at_its_next_commit_and_undo_returns_to_it(
    path: Path, tmp_path: Path
) -> None:
    state = shutil.copytree(path, tmp_path / "state")
    bundle, sessions = MADE_WITH[number(path)]
    before = {each.name: each.read_bytes() for each in state.iterdir()}
    newest = max(name for name in before if name.startswith("state-"))
    with Learner.open(HERE / bundle, state) as learner:
        assert summarise(state).format == number(path)
        answers = learner.probabilities(learner.extract(FRAMES[:, 0]))
        history = learner.committed.history
        learner.learn(FRAMES[0], "mug")
        assert summarise(state).format == STATE_FORMAT
        assert learner.sessions == sessions + 1
        # The old generation, with the files that it names, is as it was.
        assert (state / newest).read_bytes() == before[newest]
        learner.undo()
        assert_taught(learner, sessions)
        assert learner.committed.history == history
        np.testing.assert_array_equal(learner.probabilities(learner.extract(FRAMES[:, 0])), answers)
    with Learner.open(HERE / bundle, state) as learner:
        assert_taught(learner, sessions)
        assert summarise(state).format == STATE_FORMAT


def test_state_6_has_every_optional_part() -> None:
    found = summarise(HERE / "state-6")
    assert (found.device, found.bundle_version) == ("kitchen", "1.0")
    assert (found.folded.sessions, found.folded.patterns) == (2, {"hat": 10, "mug": 10})
    assert [each.session for each in found.history] == [3, 4, 5]
    assert all(each.time and each.time > 1_700_000_000 for each in found.history)
    assert {(each.device, each.bundle_version) for each in found.history} == {("kitchen", "1.0")}


def test_the_present_formats_are_pinned() -> None:
    assert (HERE / f"bundle-{BUNDLE_FORMAT}").is_dir(), "run tests/formats/make.py"
    assert (HERE / f"state-{STATE_FORMAT}").is_dir(), "run tests/formats/make.py"


@pytest.mark.parametrize("old", range(1, BUNDLE_FORMATS[0]))
def test_older_bundles_are_refused_by_number(old: int, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"format": old}))
    with pytest.raises(BundleError, match=f"format 6 or 7, got format {old} .*convert"):
        Bundle.open(tmp_path)


def from_the_future(path: Path, **changes: Any) -> None:
    """Give a state fields and an array that this version does not know."""
    file = TensorFile(FileSource(path))
    found = {**json.loads(file.meta["state"]), "mood": {"deep": [None]}, **changes}
    for each in (*found["history"], *found["tensors"], *found["rows"], found.get("folded", {})):
        each["mood"] = "good"
    arrays = {name: Outgoing.of(file.read(name)) for name in file.entries if name != DIGEST}
    arrays["mood/levels"] = Outgoing.of(np.arange(5, dtype=np.float64))
    arrays["history/mood"] = Outgoing.of(np.arange(3, dtype=np.int16))
    handle = os.open(path, os.O_WRONLY | os.O_TRUNC)
    meta = {**file.meta, "mood": "good", "state": json.dumps(found)}
    write_tensors(handle, meta, arrays)
    os.close(handle)


@pytest.fixture
def later(tmp_path: Path) -> tuple[Path, Path]:
    """A bundle and a state that a later version wrote, with optional fields of its own."""
    bundle = shutil.copytree(HERE / "bundle-7", tmp_path / "bundle")
    manifest = json.loads((bundle / "manifest.json").read_text())
    for each in (manifest, manifest["feeding"], *manifest["rates"].values()):
        each["mood"] = {"deep": [None]}
    for each in manifest["files"].values():
        each["mood"] = "good"
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    state = shutil.copytree(HERE / "state-6", tmp_path / "state")
    for path in state.glob("state-*"):
        from_the_future(path)
    return bundle, state


def test_optional_fields_of_a_later_version_are_ignored(later: tuple[Path, Path]) -> None:
    bundle, state = later
    with Learner.open(bundle, state) as learner:
        assert_taught(learner, 5)
        learner.learn(FRAMES[1], "hat")
        shipped = learner.ship(bundle.parent / "shipped")
    # What was ignored is dropped at the next write.
    newest = TensorFile(FileSource(max(state.glob("state-*"))))
    assert "mood" not in newest.meta["state"]
    assert not any("mood" in name for name in newest.entries)
    assert "mood" not in (shipped.path / "manifest.json").read_text()


def test_a_requirement_of_a_later_version_is_refused_and_nothing_changes(
    later: tuple[Path, Path],
) -> None:
    bundle, state = later
    from_the_future(max(state.glob("state-*")), requires=["folded", "mood"])
    before = {each.name: each.read_bytes() for each in state.iterdir()}
    # It does not fall back to the generation before, which would lose a session.
    with pytest.raises(StateError, match=r"state-0000000\d.*requires 'mood'; install a newer"):
        Learner.open(bundle, state)
    with pytest.raises(StateError, match="requires 'mood'; install a newer"):
        summarise(state)
    after = {each.name: each.read_bytes() for each in state.iterdir()}
    assert {**after, "checked.json": b""} == {**before, "checked.json": b""}


@pytest.mark.parametrize(
    "odd",
    ["folded", 3, {"folded": 1}, [3], [None], [["folded"]], [""], ["a\x1b[2J"], ["a" * 101],
     ["folded"] * 65],
)  # fmt: skip
def test_a_damaged_list_of_requirements(later: tuple[Path, Path], odd: object) -> None:
    bundle, state = later
    from_the_future(max(state.glob("state-*")), requires=odd)
    with Learner.open(bundle, state) as learner:
        assert learner.sessions == 4
    assert len(list(state.glob("*.damaged"))) == 1
