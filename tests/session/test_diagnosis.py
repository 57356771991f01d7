"""A diagnosis from latents made by hand, and that it changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from learning import TRAINING, fingerprint, latents_of
from lrtflite import Learner
from lrtflite.replay.codecs import LatentForm
from lrtflite.replay.memory import ReplayMemory
from lrtflite.session.diagnosis import (
    Before,
    Diagnosis,
    Disagreement,
    Loss,
    Neighbour,
    disagreements,
    neighbours,
    to_vectors,
)

Open = Callable[..., Learner]
NAMES = ["mug", "cup", "hat"]
MUG, CUP, HAT = np.eye(3)
FORM = LatentForm((3,), np.dtype(np.float32), np.dtype(np.float32), (0.0, 1.0))


def rows(*slots: int) -> np.ndarray:
    return np.array(slots, np.int32)


def test_latents_become_vectors_by_hand() -> None:
    # Roots 3 and -4, of length 5.
    np.testing.assert_allclose(to_vectors(np.array([[9.0, -16.0]])), [[0.6, -0.8]])
    # Pixels are averaged first: (0 + 18) / 2 and (-32 + 0) / 2.
    image = np.array([[[[0.0, -32.0], [18.0, 0.0]]]])
    np.testing.assert_allclose(to_vectors(image), [[0.6, -0.8]])
    np.testing.assert_array_equal(to_vectors(np.zeros((1, 4))), np.zeros((1, 4)))
    # Frames themselves are latents at `images`.
    np.testing.assert_allclose(to_vectors(np.full((1, 2, 2, 3), 200, np.uint8)), 3**-0.5)


def test_frames_that_look_like_a_stored_class() -> None:
    session = np.stack([MUG, CUP, MUG, MUG, CUP])
    found = disagreements(session, rows(0, 0, 0, 0, 0), np.stack([CUP, CUP]), rows(1, 1), NAMES)
    assert found == [Disagreement("mug", "cup", (1, 4), 5)]


def test_frames_that_look_like_a_class_of_the_same_session() -> None:
    session = np.stack([MUG, MUG, HAT, CUP, CUP, HAT, HAT, HAT])
    found = disagreements(session, rows(0, 0, 0, 1, 1, 1, 2, 2), np.empty((0, 3)), rows(), NAMES)
    assert found == [Disagreement("mug", "hat", (2,), 3), Disagreement("cup", "hat", (5,), 3)]


def test_a_frame_does_not_speak_for_its_own_label() -> None:
    # With itself in the mean of mugs, (1.8, 0.6), frame 0 would be nearest to it: cosine 0.95. The
    # mean of the other mugs is MUG, cosine 0.8; that of cups, (0.75, 0.66) to length 1, is 0.99.
    frame = np.array([0.8, 0.6, 0])
    cup = np.array([0.75, 0.66, 0]) / np.hypot(0.75, 0.66)
    found = disagreements(np.stack([frame, MUG]), rows(0, 0), cup[np.newaxis], rows(1), NAMES)
    assert found[0] == Disagreement("mug", "cup", (0,), 2)


def test_a_class_of_one_frame_is_not_judged() -> None:
    assert disagreements(CUP[np.newaxis], rows(0), CUP[np.newaxis], rows(1), NAMES) == []


def test_the_nearest_known_classes_of_a_new_one() -> None:
    session = np.stack([[0.6, 0.8, 0], [0.6, 0.8, 0]])
    stored, slots = np.stack([MUG, CUP]), rows(0, 1)
    found = neighbours(session, rows(2, 2), stored, slots, NAMES)
    assert [(each.label, each.known) for each in found] == [("hat", "cup"), ("hat", "mug")]
    assert [each.cosine for each in found] == pytest.approx([0.8, 0.6])
    assert neighbours(session, rows(1, 1), stored, slots, NAMES) == []
    assert neighbours(session, rows(2, 2), np.empty((0, 3)), rows(), NAMES) == []


def test_classes_that_lost() -> None:
    memory = ReplayMemory(10, FORM)
    latents = np.stack([MUG, MUG, MUG, CUP, CUP]).astype(np.float32)
    memory.update(latents, rows(0, 0, 0, 1, 1), session=1, rng=np.random.default_rng(0))
    # Before, one of the cups is taken for a mug; afterwards two of the mugs and the same cup are
    # wrong. A cup that was wrong before is no loss.
    was = np.eye(3, dtype=np.float32)[np.where(memory.slots == 0, 0, 1)]
    was[np.flatnonzero(memory.slots == 1)[0]] = np.eye(3)[0]
    now = was.copy()
    now[np.flatnonzero(memory.slots == 0)[:2]] = np.eye(3)[2]
    before = Before.of(memory, lambda latents: was, learned=np.array([1, 1, 1, 0], bool))
    found = before.diagnose(HAT[np.newaxis], rows(2), [*NAMES, None], lambda latents: now)
    assert found.lost == (Loss("mug", 2, 3),)
    # Slot 2 has learned, but no pattern of it is stored.
    assert found.unseen == ("hat",)


def test_nothing_is_right_before_anything_is_learned() -> None:
    memory = ReplayMemory(10, FORM)
    memory.update(MUG[np.newaxis], rows(0), session=1, rng=np.random.default_rng(0))

    def nothing(latents: np.ndarray) -> np.ndarray:
        return np.zeros((len(latents), 3), np.float32)

    before = Before.of(memory, nothing, learned=np.zeros(3, bool))
    assert not before.right.any()


def test_lines_for_a_user() -> None:
    diagnosis = Diagnosis(
        (Disagreement("mug", "cup", tuple(range(7)), 20),),
        (Neighbour("mug", "cup", 0.93),),
        (Loss("hat", 3, 30),),
    )
    assert diagnosis.lines == (
        "7 of 20 frames of mug look like cup",
        "hat lost 3 of 30 stored frames",
    )
    assert Diagnosis().lines == ()


def test_a_session_with_wrong_labels_says_so(open_learner: Open) -> None:
    learner = open_learner()
    first = learner.learn_latents(latents_of(1, 20), "cup", training=TRAINING, diagnose=True)
    assert first.diagnosis == Diagnosis()
    mixed = np.concatenate([latents_of(0, 13), latents_of(1, 7, seed=1)])
    report = learner.learn_latents(mixed, "mug", training=TRAINING, diagnose=True)
    assert report.diagnosis is not None
    assert report.diagnosis.disagreements == (Disagreement("mug", "cup", tuple(range(13, 20)), 20),)
    [nearest] = report.diagnosis.nearest
    assert (nearest.label, nearest.known) == ("mug", "cup")
    assert learner.learn_latents(mixed, "mug", training=TRAINING).diagnosis is None


def test_what_is_learned_is_the_same_to_the_last_bit(open_learner: Open) -> None:
    def taught(**how: Any) -> list[bytes]:
        learner = open_learner(seed=5)
        for kind in (0, 1, 0):
            learner.learn_latents(latents_of(kind), f"kind {kind}", training=TRAINING, **how)
        return fingerprint(learner)

    assert taught(diagnose=True) == taught()


def test_images_and_frames_can_be_diagnosed(open_deep: Callable[..., Learner]) -> None:
    for layer, changes in (("conv5_4/dw", {}), ("images", {"adapt_moments": False})):
        learner = open_deep(None, layer, **changes)
        for value, label in ((10, "dark"), (200, "white")):
            frames = np.full((4, 4, 4, 3), value, np.uint8)
            report = learner.learn(frames, label, diagnose=True)
        assert report.diagnosis is not None
        assert report.diagnosis.disagreements == ()
