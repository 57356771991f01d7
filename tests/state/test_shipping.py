"""Bundles that ship with an initial state."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from learning import TRAINING, alike_latents, fingerprint, latents_of
from lrtflite import Learner
from lrtflite.bundle.bundle import INITIAL_FILE, MANIFEST_FILE, Bundle
from lrtflite.bundle.manifest_json import read_manifest
from lrtflite.errors import BundleError, StateError
from lrtflite.files.digest import digest
from lrtflite.replay.memory import Content
from lrtflite.state.initial import shipped_labels
from lrtflite.state.reading import State, read_state_file, write_state
from lrtflite.state.shipping import ship
from lrtflite.verification.verify import verify_bundle

Open = Callable[..., Learner]
KINDS = 4


@pytest.fixture
def shipped(open_learner: Open, tmp_path: Path) -> Bundle:
    """Return the demo bundle, taught four kinds in one session, 30 latents each."""
    desk = open_learner(replay_size=100)
    latents = np.concatenate([latents_of(kind, 30) for kind in range(KINDS)])
    labels = [f"kind {kind}" for kind in range(KINDS) for _ in range(30)]
    desk.learn_latents(latents, labels)
    return desk.ship(tmp_path / "shipped")


def right(learner: Learner, kind: int) -> float:
    answers = learner.predict_latents(latents_of(kind, 40, seed=9), top=1)
    return float(np.mean([answer[0].label == f"kind {kind}" for answer in answers]))


def test_a_new_learner_starts_with_the_classes_of_the_bundle(
    shipped: Bundle, tmp_path: Path
) -> None:
    for state in (None, tmp_path / "state"):
        with Learner.open(shipped, state) as device:
            assert device.learned == tuple(f"kind {kind}" for kind in range(KINDS))
            assert device.sessions == 1
            assert len(device.memory) == 100
            assert all(right(device, kind) == 1 for kind in range(KINDS))


@pytest.mark.parametrize("how", ["missing", "truncated", "changed", "another kind"])
def test_a_bundle_without_its_initial_state_is_refused(
    shipped: Bundle, tmp_path: Path, how: str
) -> None:
    initial = shipped.path / INITIAL_FILE
    content = initial.read_bytes()
    initial.unlink()
    if how == "another kind":
        initial.mkdir()
    elif how != "missing":
        initial.write_bytes(content[:-1] if how == "truncated" else b"x" + content[1:])
    with pytest.raises(BundleError, match=f"{INITIAL_FILE}.*; .*copy the bundle again"):
        Learner.open(shipped.path, tmp_path / "state")
    assert not (tmp_path / "state").exists()


def test_it_is_the_state_of_the_learner_that_shipped(open_learner: Open, tmp_path: Path) -> None:
    desk = open_learner(replay_size=100)
    desk.learn_latents(latents_of(0), "cup", training=TRAINING)
    bundle = desk.ship(tmp_path / "shipped")
    with Learner.open(bundle, replay_size=100) as device:
        arrays = zip(fingerprint(desk)[:-1], fingerprint(device)[:-1])
        assert all(mine == theirs for mine, theirs in arrays)


def test_undo_never_goes_below_what_shipped(shipped: Bundle, tmp_path: Path) -> None:
    with Learner.open(shipped, tmp_path / "state") as device:
        before = fingerprint(device)
        with pytest.raises(StateError, match="Nothing to undo"):
            device.undo()
        device.learn_latents(latents_of(7), "new")
        device.undo()
        assert fingerprint(device) == before
        with pytest.raises(StateError, match="Nothing to undo"):
            device.undo()


def test_a_state_that_is_there_counts_more_than_the_bundles(
    open_learner: Open, shipped: Bundle, tmp_path: Path
) -> None:
    """Both bundles have the same models, so a state of either opens with the other."""
    before = open_learner(tmp_path / "state")
    before.learn_latents(latents_of(9), "hat", training=TRAINING)
    before.close()
    with Learner.open(shipped, tmp_path / "state") as device:
        assert device.learned == ("hat",)


def test_what_shipped_is_kept_while_more_is_learned(open_learner: Open, tmp_path: Path) -> None:
    """Without the shipped memory, the same sessions forget what shipped."""

    def known(device: Learner) -> float:
        found = [device.probabilities(alike_latents(k, day=99)).argmax(1) == k for k in range(6)]
        return float(np.mean(found))

    desk = open_learner()
    latents = [alike_latents(kind, day) for kind in range(6) for day in range(3)]
    labels = [f"kind {kind}" for kind in range(6) for _ in range(60)]
    desk.learn_latents(np.concatenate(latents), labels)
    bundle = desk.ship(tmp_path / "shipped")
    kept = {}
    for replay_size in (360, 0):
        with Learner.open(bundle, replay_size=replay_size) as device:
            before = known(device)
            for kind in (6, 7, 8):
                device.learn_latents(alike_latents(kind, day=10 + kind), f"kind {kind}")
            kept[replay_size] = known(device)
    assert before > 0.9
    assert kept[360] >= before - 0.02
    assert kept[0] < before - 0.2


@pytest.mark.parametrize(("replay_size", "each"), [(40, 10), (4, 1), (0, 0)])
def test_a_smaller_memory_keeps_as_many_of_each_class(
    shipped: Bundle, replay_size: int, each: int
) -> None:
    with Learner.open(shipped, replay_size=replay_size) as device:
        counts = np.bincount(device.memory.slots, minlength=KINDS)
        assert counts.tolist() == [each] * KINDS
        # Slots stay aligned with their latents.
        found = device.probabilities(device.memory.codes).argmax(axis=1) if each else []
        np.testing.assert_array_equal(found, device.memory.slots)


def test_learners_of_one_bundle_have_their_own_generators(shipped: Bundle) -> None:
    def after(seed: int) -> list[bytes]:
        with Learner.open(shipped, seed=seed) as device:
            device.learn_latents(latents_of(5, 30), "kind 5", training=TRAINING)
            return fingerprint(device)

    assert after(1) == after(1)
    assert after(1) != after(2)


def test_it_can_be_taught_more_and_ship_again(shipped: Bundle, tmp_path: Path) -> None:
    with Learner.open(shipped) as desk:
        desk.learn_latents(latents_of(5, 30), "kind 5")
        again = desk.ship(tmp_path / "again")
    with Learner.open(again) as device:
        assert device.sessions == 2
        assert len(device.learned) == KINDS + 1
    with Learner.open(again) as desk, pytest.raises(BundleError, match="give --replace"):
        desk.ship(tmp_path / "again")


def test_verify_describes_the_initial_state(shipped: Bundle, demo: Path) -> None:
    [check] = [c for c in verify_bundle(shipped.path) if c.name == "initial state"]
    assert check.seen == "4 classes, 100 latents in its memory"
    [check] = [c for c in verify_bundle(demo) if c.name == "initial state"]
    assert check.seen == "nothing was taught before it shipped"


def test_a_damaged_initial_state_is_found(shipped: Bundle) -> None:
    path = shipped.path / INITIAL_FILE
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(BundleError, match=rf"SHA-256 .*{INITIAL_FILE}"):
        Learner.open(shipped.path)
    # A matching digest does not help: the file is not a state.
    path.write_bytes(b"no state")
    _rehash(shipped.path)
    with pytest.raises(BundleError, match="copy the bundle again"):
        Learner.open(shipped.path)


@pytest.mark.parametrize("wrong", ["head", "memory", "labels", "bundle"])
def test_an_initial_state_of_another_bundle_fails_the_verification(
    shipped: Bundle, wrong: str
) -> None:
    path = shipped.path / INITIAL_FILE
    state = read_state_file(path)
    arrays, memory, meta = dict(state.arrays), state.memory, state.meta
    if wrong == "head":
        arrays["head/cw"] = arrays["head/cw"][:, :-1]
    elif wrong == "memory":
        memory = Content.empty((3,), np.dtype(np.float32))
    elif wrong == "labels":
        meta = replace(meta, labels=("other", *meta.labels[1:]))
    else:
        meta = replace(meta, bundle="0" * 64)
    write_state(path, State(arrays, memory, meta))
    _rehash(shipped.path)
    wanted = {"head": "of another shape", "memory": "rows of"}
    with pytest.raises(BundleError, match=wanted.get(wrong, "got one for another")):
        verify_bundle(shipped.path)


def test_nothing_is_written_while_a_session_runs(open_learner: Open, tmp_path: Path) -> None:
    learner = open_learner()
    heard = []

    def busy(_: object) -> None:
        with pytest.raises(Exception, match="running already"):
            learner.ship(tmp_path / "out")
        heard.append(1)

    learner.learn_latents(latents_of(0), "cup", training=TRAINING, on_progress=busy)
    assert heard
    assert not (tmp_path / "out").exists()


def test_a_snapshot_does_not_change(open_learner: Open) -> None:
    learner = open_learner(replay_size=6)
    learner.learn_latents(latents_of(0), "a", training=TRAINING)
    state = learner.snapshot()
    before = {name: values.copy() for name, values in state.arrays.items()}
    codes = state.memory.rows.all()
    learner.learn_latents(latents_of(1), "b", training=TRAINING)
    for name, values in before.items():
        np.testing.assert_array_equal(state.arrays[name], values)
    np.testing.assert_array_equal(state.memory.rows.all(), codes)


def test_a_label_alone_is_not_learned(open_learner: Open, tmp_path: Path) -> None:
    desk = open_learner()
    desk.rename(new="never taught", slot=0)
    desk.learn_latents(latents_of(1), "cup", training=TRAINING)
    bundle = desk.ship(tmp_path / "shipped")
    assert shipped_labels(bundle) == ("cup",)
    [check] = [c for c in verify_bundle(bundle.path) if c.name == "initial state"]
    assert check.seen.startswith("1 class, ")


def test_a_disk_that_is_full_leaves_no_bundle(
    open_learner: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copy", full)
    with pytest.raises(BundleError, match=r"Cannot write a bundle to .*No space left"):
        open_learner().ship(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_labels_of_the_manifest_are_those_of_the_state(shipped: Bundle) -> None:
    assert shipped.manifest.labels[: KINDS + 1] == (*(f"kind {k}" for k in range(KINDS)), None)
    with pytest.raises(BundleError, match="new or empty"):
        ship(shipped, read_state_file(shipped.path / INITIAL_FILE), shipped.path)


def _rehash(bundle: Path) -> None:
    path = bundle / MANIFEST_FILE
    manifest = read_manifest(path.read_text(), where="here")
    manifest.files[INITIAL_FILE] = digest(bundle / INITIAL_FILE)
    path.write_text(manifest.to_json())
