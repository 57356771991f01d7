"""Unknown answers of a simulation: which test counts a class as unknown, and which as known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lrtflite import Learner
from lrtflite.bundle.bundle import demo_bundle
from lrtflite.data import StreamOptions, make_stream, open_source
from lrtflite.workbench.unknown import Threshold, unknown_answers
from lrtflite_firmware_sim import SimulateOptions, Simulation, simulate
from lrtflite_firmware_sim.reporting.summary import summary
from lrtflite_firmware_sim.strangers import Strangers

TRUTH = np.array([0, 0, 1, 2])


def test_a_class_is_unknown_in_the_last_test_before_it_was_taught() -> None:
    strangers = Strangers(TRUTH)
    assert strangers.answers() is None
    strangers.tested(np.array([0.9, 0.9, 0.04, 0.6]), seen=[0])
    strangers.tested(np.array([0.04, 0.9, 0.7, 0.4]), seen=[0, 1])
    strangers.tested(np.array([0.04, 0.9, 0.3, 0.8]), seen=[0, 1, 2])
    found = strangers.answers()
    assert found is not None
    # Class 1 counts with 0.04 of the first test, class 2 with 0.4 of the second one; known frames
    # have 0.04, 0.9, 0.3 and 0.8.
    assert (found.known, found.unknown) == (4, 2)
    assert Threshold(0.05, refused=1, caught=1) in found.thresholds
    assert Threshold(0.5, refused=2, caught=2) in found.thresholds


def test_a_class_that_is_never_taught_is_unknown_at_the_end() -> None:
    strangers = Strangers(TRUTH)
    strangers.tested(np.array([0.9, 0.9, 0.9, 0.9]), seen=[0])
    strangers.tested(np.array([0.9, 0.9, 0.9, 0.01]), seen=[0, 1])
    found = strangers.answers()
    assert found is not None
    # Class 1 was unknown in the first test, class 2 is at the end.
    assert (found.known, found.unknown) == (3, 2)
    assert Threshold(0.02, refused=0, caught=1) in found.thresholds


def test_a_head_without_familiarity_has_no_unknown_answers() -> None:
    strangers = Strangers(TRUTH)
    strangers.tested(None, seen=[0, 1, 2])
    assert strangers.answers() is None


def test_a_simulation_counts_as_a_learner_would(
    simulated: Simulation, options: SimulateOptions
) -> None:
    """Learn the same stream in this process, and look at each frame before and after."""
    source = open_source(options.dataset, seed=3)
    familiarity: dict[str, list[float]] = {}
    before: list[float] = []
    with demo_bundle() as bundle, Learner.open(bundle, replay_size=20, seed=3) as learner:
        for batch in make_stream(source, StreamOptions(first_classes=2, seed=3)):
            taught = {source.classes[label] for label in batch.classes}
            for name in taught.difference(learner.learned):
                before += familiarity.get(name, [])
            learner.learn(batch.frames(), [source.classes[label] for label in batch.labels])
            familiarity = {name: [] for name in source.classes}
            for clip in source.test_clips():
                [[best, *_]] = learner.predict(next(iter(clip.read())))
                assert best.familiarity is not None
                familiarity[source.classes[clip.label]].append(best.familiarity)
    known = [each for of_class in familiarity.values() for each in of_class]
    assert (len(known), len(before)) == (16, 8)
    assert simulated.unknown == unknown_answers(known, before)
    assert "known frames" in summary(simulated)
    assert Simulation.from_json(simulated.to_json()) == simulated


def test_runs_of_one_split_differ_in_order_only(options: SimulateOptions) -> None:
    """The same pictures are taught in the same portions, and the same ones are held out."""
    short = replace(options, first_classes=1, split_seed=9)
    runs = [
        simulate(None, replace(short, learner=replace(options.learner, seed=seed)))
        for seed in (1, 2)
    ]
    first, second = ([session.classes for session in run.per_session] for run in runs)
    assert first != second
    assert sorted(first) == sorted(second)
    assert [run.stream["split_seed"] for run in runs] == [9, 9]
    assert "seed 1, split seed 9" in summary(runs[0])
