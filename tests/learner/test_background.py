"""A background that is taught is never an answer, on disk and in RAM."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from coloured_pictures import draw_pictures
from learning import TRAINING, fingerprint, latents_of
from lrtflite import Consensus, Learner
from lrtflite.answers.prediction import NO_SLOT, UNKNOWN, Answers, Prediction, top_predictions
from lrtflite.errors import InputError, StateError
from lrtflite.labels import BACKGROUND
from lrtflite.state import record
from lrtflite_cli.group import cli

Open = Callable[..., Learner]
# Kinds of latents: two things, and a place without one.
CUP, HAT, EMPTY = 0, 1, 5


def taught(open_learner: Open, state: Path | None = None, **options: object) -> Learner:
    learner = open_learner(state, **options)
    for kind, label in ((CUP, "cup"), (HAT, "hat")):
        learner.learn_latents(latents_of(kind), label, training=TRAINING)
    learner.learn_latents(latents_of(EMPTY), background=True, training=TRAINING)
    return learner


def best(learner: Learner, kind: int) -> Prediction:
    [[first, *_]] = learner.predict_latents(latents_of(kind, 1, seed=1))
    return first


def test_frames_of_the_background_are_unknown(open_learner: Open) -> None:
    learner = taught(open_learner)
    assert learner.background == 2
    assert learner.labels[:3] == ("cup", "hat", BACKGROUND)
    assert learner.learned == ("cup", "hat")
    assert [best(learner, kind).label for kind in (CUP, HAT, EMPTY)] == ["cup", "hat", UNKNOWN]
    plain = learner.probabilities(latents_of(EMPTY, 1, seed=1))[0]
    [answers] = learner.predict_latents(latents_of(EMPTY, 1, seed=1), top=9)
    assert (answers[0].slot, answers[0].is_background) == (NO_SLOT, True)
    assert answers[0].probability == pytest.approx(plain[2], abs=1e-6)
    assert answers[0].familiarity is not None
    assert [answer.label for answer in answers[1:]].count(BACKGROUND) == 0
    for kind in (CUP, EMPTY, 9):
        [answers] = learner.predict_latents(latents_of(kind, 1, seed=2), top=9)
        assert sum(answer.probability for answer in answers) == pytest.approx(1, abs=1e-5)


def test_probabilities_with_a_background_by_hand() -> None:
    """0.2 of a cup's frame and 0.5 of an empty one are the background's, in slot 1."""
    chances = np.array([[0.6, 0.2, 0.2], [0.2, 0.5, 0.3]], np.float32)
    answers = Answers(chances, np.array([0.9, 0.9], np.float32))
    labels = ("cup", BACKGROUND, "hat")
    thing, empty = top_predictions(answers, labels, top=3, unknown=0.46, background=1)
    # The classes share what the background had.
    assert [(each.label, round(each.probability, 6)) for each in thing] == [
        ("cup", 0.75),
        ("hat", 0.25),
    ]
    assert [(each.label, round(each.probability, 6)) for each in empty] == [
        (UNKNOWN, 0.5),
        ("hat", 0.3),
        ("cup", 0.2),
    ]
    unfamiliar = Answers(chances[:1], np.array([0.4], np.float32))
    [thing] = top_predictions(unfamiliar, labels, top=3, unknown=0.46, background=1)
    assert [round(each.probability, 6) for each in thing] == [0.6, 0.3, 0.1]
    assert not thing[0].is_background
    [certain] = top_predictions(
        Answers(np.array([[0, 1, 0]], np.float32)), labels, top=3, background=1
    )
    assert [(each.label, each.probability) for each in certain] == [(UNKNOWN, 1)]


def test_a_settled_answer_counts_a_familiar_background_as_unknown() -> None:
    consensus = Consensus(frames=3, threshold=0.46)
    frame = [Prediction(UNKNOWN, 0.9, NO_SLOT, 0.95, True), Prediction("cup", 0.1, 0, 0.95)]
    assert [consensus.add(frame).kind for _ in range(3)][-1] == "unknown"


def test_a_background_taught_twice_is_one(open_learner: Open) -> None:
    learner = taught(open_learner)
    report = learner.learn_latents(latents_of(6), background=True, training=TRAINING)
    assert report.labels == (BACKGROUND,)
    assert learner.patterns[BACKGROUND] == 90
    # Its slot and its label mean the background too.
    learner.learn_latents(latents_of(6, 10), BACKGROUND, training=TRAINING)
    learner.learn_latents(latents_of(6, 10), slot=2, training=TRAINING)
    assert learner.patterns[BACKGROUND] == 110
    assert learner.labels.count(None) == len(learner.labels) - 3
    assert {best(learner, EMPTY).label, best(learner, 6).label} == {UNKNOWN}


def test_a_background_outlives_the_learner_and_undo(open_learner: Open, tmp_path: Path) -> None:
    state = tmp_path / "state"
    learner = taught(open_learner, state)
    learner.forget(BACKGROUND)
    assert learner.background is None
    assert best(learner, EMPTY).label in ("cup", "hat")
    learner.undo()
    assert learner.background == 2
    learner.close()
    again = open_learner(state)
    assert (again.background, best(again, EMPTY).label) == (2, UNKNOWN)
    again.learn_latents(latents_of(7), "pen", training=TRAINING)
    assert again.background == 2


def test_older_readers_refuse_a_state_with_a_background(
    open_learner: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    taught(open_learner, state).close()
    monkeypatch.setattr(record, "REQUIRED", (record.FOLDED,))
    with pytest.raises(StateError, match="which requires 'background'; install a newer version"):
        open_learner(state)
    monkeypatch.undo()
    assert open_learner(state).background == 2


def test_a_state_without_a_background_requires_nothing_new(
    open_learner: Open,
) -> None:
    learner = open_learner()
    learner.learn_latents(latents_of(CUP), "cup", training=TRAINING)
    found = json.loads(record.Record(learner.snapshot().meta).to_json()["state"])
    assert "background" not in found
    assert "background" not in found.get("requires", [])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda learner: learner.rename(BACKGROUND, "table"), "got the background, 'nothing here'"),
        (lambda learner: learner.rename("cup", BACKGROUND), "which is that of the background"),
        (
            lambda learner: learner.learn_latents(latents_of(7), "pen", background=True),
            "Expected the background alone, got a label too",
        ),
        (
            lambda learner: learner.learn_latents(latents_of(7), slot=4, background=True),
            "Expected the background alone, got a slot too",
        ),
    ],
)
def test_a_refused_change_of_the_background_changes_nothing(
    open_learner: Open, change: Callable[[Learner], object], said: str
) -> None:
    learner = taught(open_learner)
    before = fingerprint(learner)
    with pytest.raises(InputError, match=said) as caught:
        change(learner)
    assert len(str(caught.value).splitlines()) == 1
    assert fingerprint(learner) == before


def test_the_label_of_the_background_is_no_class(open_learner: Open) -> None:
    learner = open_learner()
    for label in (BACKGROUND, "nothing  here"):
        with pytest.raises(InputError, match="which is that of the background"):
            learner.learn_latents(latents_of(CUP), label, training=TRAINING)
    assert learner.sessions == 0


def test_a_background_alone_is_nothing_to_answer_with(open_learner: Open) -> None:
    learner = open_learner()
    learner.learn_latents(latents_of(EMPTY), background=True, training=TRAINING)
    with pytest.raises(InputError, match="has learned nothing yet"):
        learner.predict_latents(latents_of(EMPTY, 1))


def test_the_command_line_teaches_a_background(demo: Path, tmp_path: Path) -> None:
    pictures, state = draw_pictures(tmp_path / "things", classes=2, images=3), tmp_path / "state"
    one, other = sorted(pictures.iterdir())

    def run(*words: object) -> str:
        done = CliRunner().invoke(cli, ["learn", str(demo), str(state), *map(str, words)])
        return done.output if done.exit_code == 0 else f"{done.exception}"

    assert "got neither; give one of them" in run(one)
    assert "got both; give one of them" in run(one, "--label", "cup", "--background")
    assert not state.exists()
    assert "learned cup, a new class" in run(one, "--label", "cup")
    assert "never an answer, from 3 pictures" in run(other, "--background")
    with Learner.open(demo, state, read_only=True) as learner:
        assert (learner.learned, learner.background) == (("cup",), 1)
