"""A background is one class of a fleet, and is never an answer of the merged state."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fleet_learning import refused, teach
from learning import alike_latents
from lrtflite import Learner
from lrtflite.answers.prediction import UNKNOWN
from lrtflite.errors import InputError
from lrtflite.fleet.merge import merge
from lrtflite.labels import BACKGROUND
from lrtflite.state.folder import read_state


def teach_background(bundle: Path, state: Path, day: int) -> Path:
    with Learner.open(bundle, state) as learner:
        learner.learn_latents(alike_latents(5, day), background=True)
    return state


def test_backgrounds_of_two_devices_are_one(lda: Path, tmp_path: Path) -> None:
    kitchen = teach(lda, tmp_path / "kitchen", ("mug", 0, 1))
    teach_background(lda, kitchen, 1)
    office = teach_background(lda, tmp_path / "office", 2)
    teach(lda, office, ("pen", 2, 3))
    merged = merge(lda, [kitchen, office], tmp_path / "merged")
    with Learner.open(lda, merged.out) as learner:
        assert learner.labels[:3] == ("mug", BACKGROUND, "pen")
        assert learner.background == 1
        assert learner.patterns == {"mug": 20, BACKGROUND: 40, "pen": 20}
        answers = learner.predict_latents(alike_latents(5, 4)[:3])
        assert {top[0].label for top in answers} == {UNKNOWN}
    # The first device has none: the other's goes into a free slot.
    plain = teach(lda, tmp_path / "hall", ("hat", 4, 4))
    merged = merge(lda, [plain, office], tmp_path / "other")
    meta = read_state(merged.out).meta
    assert meta.background == meta.labels.index(BACKGROUND) == 1


def test_a_class_of_the_same_name_is_refused(lda: Path, tmp_path: Path) -> None:
    office = teach_background(lda, tmp_path / "office", 2)
    hall = teach(lda, tmp_path / "hall", ("hat", 4, 4))
    with Learner.open(lda, hall) as learner:
        # As an older version could name a class.
        slots = learner.committed.slots
        learner.committed.slots = replace(slots, labels=(BACKGROUND, *slots.labels[1:]))
        learner.learn_latents(alike_latents(4, 5), slot=0)
    said = "Expected no class named 'nothing here' next to a background"
    refused(InputError, said, lambda out: merge(lda, [office, hall], out), tmp_path / "merged")
