"""The paper's app: 100 frames, 8 epochs x 5 iterations of 20 + 100, memory 500."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from coloured_pictures import draw_pictures
from lrtflite.bundle.bundle import Bundle, demo_bundle
from lrtflite.bundle.feeding import Feeding
from lrtflite.bundle.manifest import Manifest
from lrtflite.bundle.training import Rate
from lrtflite.errors import InputError, RuntimeMissing
from lrtflite.options import LearnerOptions
from lrtflite.replay.policies import POLICIES
from lrtflite_firmware_sim import SimulateOptions, simulate
from lrtflite_firmware_sim.plan import make_plan

# The mini-batch of the paper's app.
FEEDING = Feeding(batch_size=120, new_per_batch=20, epochs=4, least_steps=24)


@pytest.fixture
def manifest() -> Manifest:
    with demo_bundle() as path:
        found = Bundle.open(path).manifest
    return replace(
        found, labels=(None,) * 50, feeding=FEEDING, replay_size=1500, policy="algorithm1"
    )


def test_plan_is_the_apps(manifest: Manifest) -> None:
    plan = make_plan(manifest, SimulateOptions(protocol="app"))
    assert plan.rates["epochs"] == 8
    assert (plan.learner.replay_size, plan.learner.policy) == (500, "balanced")
    assert len(plan.batches) == 41  # ten classes first, then each of the other forty
    assert len(plan.batches[0].classes) == 10
    assert all(len(batch) == 100 and len(batch.classes) == 1 for batch in plan.batches[1:])
    assert plan.stream["protocol"] == "app"
    assert not any("mini-batch" in note.lower() for note in plan.notes)


def test_the_app_takes_no_extra_steps(manifest: Manifest) -> None:
    patient = replace(manifest, feeding=replace(FEEDING, extra_steps=100, enough_loss=0.01))
    training = make_plan(patient, SimulateOptions(protocol="app")).rates
    assert training["extra_steps"] == 0
    app = patient.training.with_options(**training).feeding
    # 100 frames and a memory of 500: 8 epochs of 5 steps.
    assert app.steps(new=100, stored=500) == app.longest(new=100, stored=500) == 40
    usual = make_plan(patient, SimulateOptions()).rates
    assert (usual["extra_steps"], usual["enough_loss"]) == (100, 0.01)


def test_what_is_given_wins_over_the_app(manifest: Manifest) -> None:
    options = SimulateOptions(
        protocol="app",
        rates={"epochs": 2},
        learner=LearnerOptions(replay_size=7, policy="algorithm1"),
        batch_frames=30,
        visits=2,
    )
    plan = make_plan(manifest, options)
    assert plan.rates["epochs"] == 2
    assert (plan.learner.replay_size, plan.learner.policy) == (7, "algorithm1")
    assert {len(batch) for batch in plan.batches[1:]} == {30}
    assert len(plan.batches) == 1 + 40 + 50


def test_another_mini_batch_is_said(manifest: Manifest) -> None:
    other = replace(FEEDING, batch_size=128, new_per_batch=21)
    plan = make_plan(replace(manifest, feeding=other), SimulateOptions(protocol="app"))
    assert any("21 + 107" in note and "20 + 100" in note for note in plan.notes)


def test_nic_leaves_it_to_the_bundle(manifest: Manifest) -> None:
    plan = make_plan(manifest, SimulateOptions())
    assert plan.training == manifest.training
    assert (plan.learner.replay_size, plan.learner.policy) == (1500, "algorithm1")
    assert plan.notes == ()


def test_a_rate_is_one_that_the_bundle_has(manifest: Manifest) -> None:
    deep = replace(manifest, rates={**manifest.rates, "trunk_lr": Rate(0.015)})
    plan = make_plan(deep, SimulateOptions(rates={"lr": 0.5, "trunk_lr": 0.25}))
    assert plan.training == deep.training.with_options(lr=0.5, trunk_lr=0.25)
    assert plan.rates.items() >= {"lr": 0.5, "trunk_lr": 0.25, "epochs": 4}.items()
    assert make_plan(deep, SimulateOptions()).rates["trunk_lr"] == 0.015
    named = ", ".join(manifest.training.names)
    with pytest.raises(InputError, match=f"Expected a rate of {named}, got 'trunk_lr'"):
        make_plan(manifest, SimulateOptions(rates={"trunk_lr": 0.25}))


def test_a_data_set_with_more_classes_than_slots(manifest: Manifest) -> None:
    with pytest.raises(InputError, match=r"50 classes of synthetic, got 15 slots.*--classes 50"):
        make_plan(replace(manifest, labels=(None,) * 15), SimulateOptions())
    # Ten slots are taken by labels that the data set does not have.
    foreign = tuple(f"thing {n}" for n in range(10)) + (None,) * 40
    with pytest.raises(InputError, match=r"got 50 slots, 40 of them free.*--classes 60"):
        make_plan(replace(manifest, labels=foreign), SimulateOptions())


def test_labels_of_the_same_name_need_no_free_slot(manifest: Manifest, pictures: Path) -> None:
    named = replace(manifest, labels=("red", "blue", None, None))
    make_plan(named, SimulateOptions(dataset=f"folder:{pictures}"))
    with pytest.raises(InputError, match="--classes 5"):
        make_plan(
            replace(named, labels=("red", "violet", None, None)),
            SimulateOptions(dataset=f"folder:{pictures}"),
        )


def test_a_stream_with_nothing_new_later_is_said(manifest: Manifest, pictures: Path) -> None:
    folder = f"folder:{pictures}"
    [note] = make_plan(manifest, SimulateOptions(dataset=folder)).notes
    assert "smaller --first-classes" in note
    assert make_plan(manifest, SimulateOptions(dataset=folder, first_classes=2)).notes == ()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"protocol": "x"}, "protocol of nic, ni, app"),
        ({"protocol": "ni", "first_classes": 3}, "no first_classes with the protocol ni, got 3"),
        ({"sessions": 0}, "sessions as a whole number of at least 1, got 0"),
    ],
)
def test_options_are_checked(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        SimulateOptions(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"policy": "x"}, f"policy of {', '.join(POLICIES)}, got 'x'"),
        ({"replay_size": -1}, "replay_size as a whole number from 0 to 100,000,000, got -1"),
        ({"threads": 0}, "threads as a whole number from 1 to 64, got 0"),
        ({"threads": 10**12}, "threads as a whole number from 1 to 64, got 1000000000000"),
        ({"threads": "2"}, "from 1 to 64, got '2'"),
        ({"seed": 1.5}, "seed as a whole number of at least 0, got 1.5"),
    ],
)
def test_options_of_the_learner_are_checked(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        SimulateOptions(learner=LearnerOptions(**wrong))  # type: ignore[arg-type]


def test_an_unknown_runtime_names_those_there_are() -> None:
    with pytest.raises(RuntimeMissing, match="runtime of auto, litert, tflite, got 'x'"):
        SimulateOptions(learner=LearnerOptions(runtime="x"))


def test_a_session_takes_forty_steps(tmp_path: Path) -> None:
    pictures = draw_pictures(tmp_path / "pictures", classes=2, images=150)
    result = simulate(
        None,
        SimulateOptions(dataset=f"folder:{pictures}", protocol="app", first_classes=1),
    )
    first, second = result.per_session
    assert (first.frames, second.frames) == (100, 100)
    # With nothing to replay, 100 frames fill one mini-batch per epoch, and 8 steps are too few.
    assert first.steps == result.training["least_steps"] == 24
    assert result.bundle.new_per_batch == 20
    assert second.steps == 8 * 5
    assert result.replay_patterns == 200
    assert any("5 fps" in note for note in result.notes)
    assert np.isclose(result.session_ms_p50, np.mean([s.session_ms for s in result.per_session]))


def test_some_drawn_objects_have_the_apps_frames_too(manifest: Manifest) -> None:
    for dataset, frames in (
        ("synthetic?classes=12", 100),
        ("synthetic?test_frames=2&classes=12", 100),
        ("synthetic?classes=12&frames=40", 40),
    ):
        plan = make_plan(manifest, SimulateOptions(protocol="app", dataset=dataset))
        assert len(plan.source.classes) == 12
        assert {len(batch) for batch in plan.batches[1:]} == {frames}


def test_a_class_with_one_video_is_said(manifest: Manifest, tmp_path: Path) -> None:
    things = draw_pictures(tmp_path / "things", classes=2, images=6)
    (things / "toy").mkdir()
    first, *rest = [Image.new("L", (4, 4), i) for i in range(60)]
    first.save(things / "toy" / "a.gif", save_all=True, append_images=rest, duration=100)
    plan = make_plan(manifest, SimulateOptions(dataset=f"folder:{things}"))
    assert any(note.startswith("toy: one video only; its last third") for note in plan.notes)
