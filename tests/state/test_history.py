"""The history of a state: ids that nothing takes away, labels that follow their classes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from learning import TRAINING, fingerprint, latents_of
from lrtflite import Learner
from lrtflite.state.folder import read_state
from lrtflite.state.history import History, TaughtSession

Open = Callable[..., Learner]
A, B = "a" * 32, "b" * 32


def test_labels_follow_their_classes_and_keep_their_place() -> None:
    history = History(
        (TaughtSession(A, 1, ("mug", "hat"), (3, 4)), TaughtSession(B, 2, ("mug",), (5,)))
    )
    renamed = history.renamed("mug", "cup")
    assert [entry.labels for entry in renamed.entries] == [("cup", "hat"), ("cup",)]
    assert renamed.patterns == {"cup": 8, "hat": 4}
    forgotten = renamed.renamed("cup", None)
    assert [entry.labels for entry in forgotten.entries] == [(None, "hat"), (None,)]
    assert forgotten.patterns == {"hat": 4}
    assert forgotten.ids == {A, B}
    # A new class of the old name has nothing to do with the forgotten one.
    assert forgotten.renamed(None, "mug") == forgotten
    recent = [entry.to_json() for entry in forgotten.recent]
    assert History.from_state(recent, None, {}) == forgotten


def test_a_session_is_counted_by_label(open_learner: Open, tmp_path: Path) -> None:
    learner = open_learner(tmp_path / "state")
    latents = latents_of(0, 5)
    learner.learn_latents(latents, ["mug", "hat", "mug", "mug", "hat"], training=TRAINING)
    learner.learn_latents(latents, slot=4, training=TRAINING)
    first, second = read_state(tmp_path / "state").meta.history
    assert (first["session"], first["labels"], first["patterns"]) == (1, ["mug", "hat"], [3, 2])
    assert (second["session"], second["labels"], second["patterns"]) == (2, ["class 4"], [5])
    assert len(first["id"]) == 32
    assert first["id"] != second["id"]


def test_ids_survive_all_that_is_no_session(open_learner: Open, tmp_path: Path) -> None:
    learner = open_learner(tmp_path / "state")
    learner.learn_latents(latents_of(0), "mug", training=TRAINING)
    learner.learn_latents(latents_of(1), "hat", training=TRAINING)
    before = learner.committed.history
    learner.rename("mug", "cup")
    learner.forget("hat")
    after = learner.committed.history
    assert after.ids == before.ids
    assert [entry.labels for entry in after.entries] == [("cup",), (None,)]
    learner.undo()
    assert learner.committed.history == before.renamed("mug", "cup")
    snapshot = learner.snapshot()
    assert snapshot.history == learner.committed.history
    shipped = learner.ship(tmp_path / "shipped")
    learner.close()
    assert Learner.open(shipped).committed.history == before.renamed("mug", "cup")
    with open_learner(tmp_path / "state") as again:
        assert again.committed.history == before.renamed("mug", "cup")


def test_undo_takes_a_session_out_of_the_history(open_learner: Open, tmp_path: Path) -> None:
    learner = open_learner(tmp_path / "state")
    learner.learn_latents(latents_of(0), "mug", training=TRAINING)
    before = learner.committed.history
    learner.learn_latents(latents_of(1), "hat", training=TRAINING)
    learner.undo()
    assert learner.committed.history == before


def test_two_devices_with_the_same_seed_differ_in_ids_only(open_learner: Open) -> None:
    one, other = open_learner(), open_learner()
    for learner in (one, other):
        learner.learn_latents(latents_of(0), "mug", training=TRAINING)
    assert fingerprint(one) == fingerprint(other)
    assert not one.committed.history.ids & other.committed.history.ids
