"""A diagnosis without stored frames: the halves of a session answer for each other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from closed_form_bundles import FEATURES, STRATEGIES, cloud
from lda_reference import LdaReference
from learning import TRAINING, fingerprint, latents_of
from lrtflite import Learner
from lrtflite.errors import SessionCancelled
from lrtflite.session.diagnosis import NOT_JUDGED, Disagreement, Loss
from lrtflite.session.minibatch import Patterns
from lrtflite.session.rehearsal import deal, rehearse
from lrtflite.session.session import Session

# The bundles' memories have 20 rows, so these tests give a replay size.
NAMES = ("mug", "cup", "hat", "pen")
Open = Callable[..., Learner]


def rehearsed(learner: Learner, latents: np.ndarray, slots: np.ndarray) -> np.ndarray:
    committed = learner.committed
    return rehearse(
        committed.working,
        Patterns(latents, slots.astype(np.int32), learner.memory),
        learner.training,
        learned=committed.learned,
        session=Session(None, None),
    )


def test_frames_of_each_class_alternate() -> None:
    assert deal(np.array([4, 4, 4, 2, 4, 2], np.int32)).tolist() == [0, 1, 0, 0, 1, 1]
    assert deal(np.empty(0, np.int32)).tolist() == []


def test_answers_against_numpy(opened: Open) -> None:
    """Answers of both halves, from the sums of the known classes and of the other half."""
    learner = opened(replay_size=0)
    for kind in range(3):
        learner.learn_latents(cloud(kind), NAMES[kind])
    # The new class has frames of two known ones; a known one is taught again.
    session = np.concatenate([cloud(3, 9), cloud(1, 5, seed=2), cloud(0, 4, seed=3)])
    session = np.concatenate([session, cloud(2, 3, seed=4), cloud(0, 3, seed=5)])
    slots = np.repeat([3, 2], [18, 6])
    halves, expected = deal(slots), np.zeros(len(slots), int)
    for half in (0, 1):
        reference = LdaReference(learner.bundle.manifest.slots, FEATURES)
        for kind in range(3):
            reference.gather(cloud(kind), np.repeat(kind, 20))
        reference.gather(session[halves != half], slots[halves != half])
        asked = halves == half
        expected[asked] = reference.known[reference.scores(session[asked]).argmax(axis=1)]
    assert set(expected[:9]) == {3}
    assert set(expected[9:18]) >= {0, 1}
    np.testing.assert_array_equal(rehearsed(learner, session, slots), expected)


def test_a_new_class_of_one_frame_is_not_judged(opened: Open) -> None:
    learner = opened(replay_size=0)
    learner.learn_latents(cloud(0), "mug")
    session = np.concatenate([cloud(1, 1), cloud(0, 1, seed=2)])
    assert rehearsed(learner, session, np.array([1, 0])).tolist() == [NOT_JUDGED, 0]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_wrong_frames_of_a_session_are_named_without_a_memory(opened: Open, strategy: str) -> None:
    learner = opened(strategy=strategy, replay_size=0)
    for kind in range(3):
        learner.learn_latents(cloud(kind), NAMES[kind])
    assert len(learner.memory) == 0
    mixed = np.concatenate([cloud(3, 16), cloud(1, 4, seed=1)])
    diagnosis = learner.learn_latents(mixed, "pen", diagnose=True).diagnosis
    assert diagnosis is not None
    assert diagnosis.disagreements == (Disagreement("pen", "cup", tuple(range(16, 20)), 20),)
    assert diagnosis.lines == ("4 of 20 frames of pen look like cup",)
    assert diagnosis.unseen == ("mug", "cup", "hat")
    assert diagnosis.note == (
        "No frames are stored of mug, cup, hat, so what such classes lose is not seen; a replay "
        "size of 200 stores some"
    )


def test_a_replay_size_shows_what_classes_lose(opened: Open, tmp_path: Path) -> None:
    """The note's advice works for a state that was begun without a memory."""
    with opened(tmp_path / "state", replay_size=0) as learner:
        learner.learn_latents(cloud(0), "mug")
    with opened(tmp_path / "state", replay_size=200) as learner:
        for kind in (1, 2):
            learner.learn_latents(cloud(kind), NAMES[kind])
        cups, slot = cloud(1), learner.labels.index("cup")
        assert (learner.probabilities(cups).argmax(axis=1) == slot).all()
        # Cups, taught as pens, take stored cups with them.
        diagnosis = learner.learn_latents(cloud(1, 80, seed=3), "pen", diagnose=True).diagnosis
        wrong = int((learner.probabilities(cups).argmax(axis=1) != slot).sum())
    assert diagnosis is not None
    assert diagnosis.unseen == ("mug",)
    assert wrong > 0
    assert diagnosis.lost == (Loss("cup", wrong, 20),)
    # The size stays with the state, and a complete memory needs no rehearsal.
    with opened(tmp_path / "state") as learner:
        learner.learn_latents(cloud(0, seed=1), "mug")
        diagnosis = learner.learn_latents(cloud(2, seed=1), "hat", diagnose=True).diagnosis
    assert diagnosis is not None
    assert diagnosis.unseen == ()
    assert diagnosis.note is None


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_learned_is_the_same_to_the_last_bit(opened: Open, strategy: str) -> None:
    def taught(*, diagnose: bool) -> list[bytes]:
        learner = opened(strategy=strategy, replay_size=0)
        for kind in (0, 1, 0, 2):
            learner.learn_latents(cloud(kind, seed=kind), NAMES[kind], diagnose=diagnose)
        return fingerprint(learner)

    assert taught(diagnose=True) == taught(diagnose=False)


def test_a_head_that_trains_in_steps_without_a_memory(open_learner: Open) -> None:
    def taught(*, diagnose: bool) -> list[bytes]:
        learner = open_learner(replay_size=0, seed=5)
        for kind in (0, 1, 0):
            report = learner.learn_latents(
                latents_of(kind), f"kind {kind}", training=TRAINING, diagnose=diagnose
            )
            # Steps of the rehearsal are not those of the session.
            assert len(report.timings["train"]) == report.steps
        return fingerprint(learner)

    assert taught(diagnose=True) == taught(diagnose=False)


def test_a_rehearsal_that_is_stopped_leaves_no_trace(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = opened(replay_size=0)
    learner.learn_latents(cloud(0), "mug")
    before, cancel = fingerprint(learner), threading.Event()
    run = learner.committed.working.run

    def stopping(name: str, **inputs: Any) -> Any:
        if name == "gather":
            cancel.set()
        return run(name, **inputs)

    monkeypatch.setattr(learner.committed.working, "run", stopping)
    with pytest.raises(SessionCancelled):
        learner.learn_latents(cloud(1), "cup", diagnose=True, cancel=cancel)
    monkeypatch.undo()
    assert fingerprint(learner) == before
    for each in (learner, other := opened(replay_size=0)):
        if each is other:
            other.learn_latents(cloud(0), "mug")
        each.learn_latents(cloud(1), "cup")
    assert fingerprint(learner) == fingerprint(other)
