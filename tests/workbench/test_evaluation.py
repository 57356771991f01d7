"""`evaluate`: accuracy, classes and confusions, counted by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from learning import TRAINING, frames_of
from lrtflite import Learner, evaluate
from lrtflite.answers.prediction import NO_SLOT, UNKNOWN, Prediction
from lrtflite.errors import InputError
from lrtflite.workbench.evaluation import ClassEvaluation, Confusion, Evaluation

# Answer of each grey.
ANSWERS = {1: "mug", 2: "cup", 3: "hat", 9: UNKNOWN}
FAMILIARITY = {1: 0.9, 2: 0.8, 3: 0.04, 9: 0.001}


@dataclass
class Names:
    """A learner that knows three classes and reads its answer from a frame's grey."""

    learned: tuple[str, ...] = ("mug", "cup", "hat")
    reports_familiarity: bool = True
    # A bundle without a threshold.
    bundle = SimpleNamespace(manifest=SimpleNamespace(unknown=None))

    def predict(self, frame: np.ndarray, *, top: int) -> list[list[Prediction]]:
        assert top == 1
        grey = int(frame[0, 0, 0])
        slot = NO_SLOT if grey == 9 else grey
        familiarity = FAMILIARITY[grey] if self.reports_familiarity else None
        return [[Prediction(ANSWERS[grey], 0.5, slot, familiarity)]]


def judged(pairs: Sequence[tuple[str, int]], learner: Any = None, **options: Any) -> Evaluation:
    names: Any = Names() if learner is None else learner
    frames = (np.full((2, 2, 3), grey, np.uint8) for _, grey in pairs)
    return evaluate(names, frames, [label for label, _ in pairs], **options)


def test_classes_and_confusions() -> None:
    found = judged(
        [
            *[("mug", 1)] * 5,
            *[("mug", 2)] * 2,
            ("mug", 3),
            *[("cup", 2)] * 3,
            *[("cup", 1)] * 2,
            *[("cup", 3)] * 2,
            *[("hat", 3)] * 2,
        ]
    )
    # 5 of 8, 3 of 7 and 2 of 2.
    assert (found.frames, found.right, found.others) == (17, 10, 0)
    assert found.accuracy == 10 / 17
    assert found.classes == (
        ClassEvaluation("mug", True, 8, 5, 5 / 8, "cup", 2),
        # hat and mug are equally frequent: the first by name.
        ClassEvaluation("cup", True, 7, 3, 3 / 7, "hat", 2),
        ClassEvaluation("hat", True, 2, 2, 1.0, None, 0),
    )
    assert found.confusions == (
        Confusion("cup", "hat", 2),
        Confusion("cup", "mug", 2),
        Confusion("mug", "cup", 2),
        Confusion("mug", "hat", 1),
    )


def test_classes_that_were_not_learned_are_unknown_things() -> None:
    found = judged([("mug", 1), ("mug", 9), ("pen", 9), ("pen", 3), ("pen", 3), ("tin", 2)])
    # The accuracy is over the mugs, of which one was refused.
    assert (found.accuracy, found.frames, found.right, found.others) == (0.5, 2, 1, 4)
    assert found.classes == (
        ClassEvaluation("mug", True, 2, 1, 0.5, UNKNOWN, 1),
        ClassEvaluation("pen", False, 3, 1, 1 / 3, "hat", 2),
        ClassEvaluation("tin", False, 1, 0, 0.0, "cup", 1),
    )
    assert Confusion("pen", UNKNOWN, 1) not in found.confusions
    # Known: 0.9 and 0.001; unknown: 0.001, 0.04, 0.04 and 0.8.
    assert found.unknown is not None
    caught = {each.value: (each.refused, each.caught) for each in found.unknown.thresholds}
    assert (caught[0.01], caught[0.05], caught[0.5]) == ((1, 1), (1, 3), (1, 3))
    assert found.unknown.recommended is None  # half of the mugs are refused by all


def test_the_limit_of_refusals_is_passed_on() -> None:
    found = judged([("mug", 1), ("mug", 9), ("pen", 3)], most_refused=0.5)
    assert found.unknown is not None
    assert (found.unknown.most_refused, found.unknown.recommended) == (0.5, 0.05)


def test_a_head_that_does_not_tell_has_no_thresholds() -> None:
    found = judged([("mug", 1)], Names(reports_familiarity=False))
    assert (found.accuracy, found.unknown) == (1.0, None)


def test_labels_are_names_in_one_form() -> None:
    learner = Names(learned=("th\u00e9", "3"))
    found = judged([("the\u0301", 1)], learner)
    assert found.classes[0].label == "th\u00e9"
    assert evaluate(learner, [np.full((2, 2, 3), 1, np.uint8)], [3]).frames == 1  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pairs", "learner", "said"),
    [
        ([("pen", 1)], Names(), r"of a learned class \(mug, cup, hat\), got only pen; check"),
        ([], Names(), "got none; check the labels"),
        ([("mug", 1)], Names(learned=()), "a learner that has learned something; teach it"),
    ],
)
def test_frames_of_no_learned_class_are_refused(
    pairs: list[tuple[str, int]], learner: Names, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        judged(pairs, learner)


@pytest.mark.parametrize("labels", [["mug"], ["mug"] * 3])
def test_one_label_per_frame(labels: list[str]) -> None:
    frames = [np.full((2, 2, 3), 1, np.uint8)] * 2
    with pytest.raises(InputError, match=f"one label per frame, got {len(labels)} for "):
        evaluate(Names(), frames, labels)  # type: ignore[arg-type]


def test_progress_counts_frames() -> None:
    heard: list[tuple[int, int | None]] = []
    judged([("mug", 1), ("cup", 2)], on_progress=lambda p: heard.append((p.done, p.total)))
    assert heard == [(1, 2), (2, 2)]


def test_the_answers_are_those_of_predict(open_learner: Callable[..., Learner]) -> None:
    """A real learner, once without a threshold and once with one that refuses everything."""
    learner = open_learner()
    for kind in range(2):
        learner.learn(frames_of(kind), f"kind {kind}", training=TRAINING)
    frames = np.concatenate([frames_of(kind) for kind in range(3)])
    labels = [f"kind {kind}" for kind in range(3) for _ in range(12)]
    found = evaluate(learner, frames, labels)
    expected = [top[0].label for top in learner.predict(frames, top=1)]
    right = sum(a == b for a, b in zip(expected[:24], labels[:24]))
    assert (found.frames, found.right, found.others) == (24, right, 12)
    learner.unknown = 1.0
    refused = evaluate(learner, frames, labels)
    assert refused.right < 3
    assert refused.classes[2].right >= 11
    assert refused.unknown == found.unknown
