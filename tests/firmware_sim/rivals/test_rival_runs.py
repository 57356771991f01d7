"""Simulations with a rival: the stream, the results and what they say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from icarl_reference import Reference
from lrtflite import Learner
from lrtflite.data import StreamOptions, make_stream, open_source
from lrtflite.errors import InputError
from lrtflite.options import LearnerOptions
from lrtflite_firmware_sim import SimulateOptions, Simulation, load_simulation, simulate
from lrtflite_firmware_sim.device.process import DeviceProcess
from lrtflite_firmware_sim.reporting.report import html_report
from lrtflite_firmware_sim.reporting.summary import summary
from lrtflite_firmware_sim.rivals import RIVALS
from lrtflite_firmware_sim.rivals.cumulative import EPOCHS

# Learner options of each rival: eight virtual classes get two exemplars each, of four frames.
LEARNERS = {
    "cumulative": LearnerOptions(seed=3),
    "icarl": LearnerOptions(seed=3, replay_size=16),
}


@pytest.fixture(scope="module", params=list(LEARNERS))
def result(request: pytest.FixtureRequest, options: SimulateOptions) -> Simulation:
    """Simulate a first session of two classes, then six of one class."""
    name: str = request.param
    return simulate(None, replace(options, rival=name, learner=LEARNERS[name]))


def test_every_rival_is_tested() -> None:
    assert set(LEARNERS) == set(RIVALS)


def test_it_learns_the_same_stream(result: Simulation, simulated: Simulation) -> None:
    streams = [[session.classes for session in run.per_session] for run in (result, simulated)]
    assert streams[0] == streams[1]
    assert [session.frames for session in result.per_session] == [
        session.frames for session in simulated.per_session
    ]
    assert result.final_accuracy > 0.9
    assert result.test_frames == simulated.test_frames


def test_its_cost_is_measured_like_that_of_a_head(result: Simulation) -> None:
    assert result.latency_ms["extract"].n == 32
    assert result.latency_ms["checkpoint"].n == result.session_ms.n == 7
    assert all(session.session_ms > 0 for session in result.per_session)
    assert 25 < result.peak_ram_mb < 250
    [features] = result.bundle.latent_shape
    assert result.replay_bytes == result.replay_patterns * (4 * features + 4)


def test_its_memory_and_training(result: Simulation) -> None:
    steps = [session.steps for session in result.per_session]
    if result.rival == "icarl":
        assert (result.policy, result.replay_patterns, result.replay_size) == ("herding", 16, 16)
        assert (steps, result.training) == ([0] * 7, {})
        assert all(session.loss is None for session in result.per_session)
        assert "memory" in result.latency_ms
    else:
        assert (result.policy, result.replay_patterns) == ("everything", 32)
        assert [session.replay_patterns for session in result.per_session] == [8, *range(12, 33, 4)]
        # At most 32 patterns are one mini-batch.
        assert steps == [EPOCHS] * 7
        assert result.training["epochs"] == EPOCHS


def test_every_text_names_the_rival(result: Simulation, tmp_path: Path) -> None:
    name = str(result.rival)
    found = json.loads(result.to_json())
    assert (found["rival"], found["bundle"]["strategy"]) == (name, "cwr")
    assert result.strategy == name
    (tmp_path / "r.json").write_text(result.to_json())
    assert load_simulation(tmp_path / "r.json") == result
    note = f"The rival {name} learned instead of the bundle's head (cwr)."
    assert any(line.startswith(note) for line in result.notes)
    assert f"learned by the rival {name}, not by the bundle's head" in summary(result).splitlines()
    page = html_report(result)
    assert f"after 7 sessions with {name}</h1>" in page
    assert f"with the rival {name} of the paper instead of" in page
    assert f"<td>rival</td><td>{name}, in the simulator only</td>" in page
    assert "<td>mini-batch</td>" not in page
    assert "without the old frames" not in page


def test_other_runs_name_none(simulated: Simulation) -> None:
    found = json.loads(simulated.to_json())
    assert found.pop("rival") is None
    assert Simulation.from_json(json.dumps(found)) == simulated  # a file from before there were any
    assert simulated.strategy == "cwr"
    assert "rival" not in summary(simulated)
    assert "rival" not in html_report(simulated)


def test_the_seed_decides_everything(options: SimulateOptions) -> None:
    few = replace(options, rival="cumulative", learner=LEARNERS["cumulative"], sessions=2)
    one, two = simulate(None, few), simulate(None, few)
    assert [s.loss for s in one.per_session] == [s.loss for s in two.per_session]
    assert one.per_class == two.per_class


def test_icarl_answers_like_its_formulas(options: SimulateOptions, demo: Path) -> None:
    """Learn the same stream from latents of a learner, with the re-derivation of iCaRL."""
    result = simulate(None, replace(options, rival="icarl", learner=LEARNERS["icarl"]))
    source = open_source(options.dataset, seed=3)
    reference = Reference(16)
    with Learner.open(demo) as learner:
        test = [
            (learner.extract(np.stack(list(clip.read()))), clip.label)
            for clip in source.test_clips()
        ]
        for batch, session in zip(
            make_stream(source, StreamOptions(first_classes=2, seed=3)), result.per_session
        ):
            reference.learn(learner.extract(np.stack(list(batch.frames()))), list(batch.labels))
            right = [reference.answer(x) == label for latents, label in test for x in latents]
            assert session.accuracy == pytest.approx(np.mean(right))


def test_any_bundle_with_vectors_will_do(lda: Path, options: SimulateOptions) -> None:
    result = simulate(lda, replace(options, rival="icarl", learner=LEARNERS["icarl"], sessions=3))
    assert (result.strategy, result.bundle.strategy) == ("icarl", "lda")
    assert result.per_session[-1].accuracy_seen > 0.9


def test_the_protocol_of_the_app(options: SimulateOptions) -> None:
    app = replace(options, protocol="app", rival="icarl", learner=LearnerOptions(seed=3))
    result = simulate(None, replace(app, sessions=2))
    assert (result.protocol, result.replay_size, result.policy) == ("app", 500, "herding")
    assert not any("mini-batch" in note.lower() for note in result.notes)


def test_cumulative_keeps_its_epochs_in_the_app(options: SimulateOptions) -> None:
    app = replace(options, protocol="app", rival="cumulative", learner=LearnerOptions(seed=3))
    assert simulate(None, replace(app, sessions=1)).training["epochs"] == EPOCHS


@pytest.fixture(params=list(LEARNERS))
def device(request: pytest.FixtureRequest, demo: Path) -> Iterator[DeviceProcess]:
    options = LearnerOptions(replay_size=50, threads=1)
    with DeviceProcess(demo, options, rival=request.param) as process:
        yield process


def test_a_device_with_a_rival(device: DeviceProcess) -> None:
    frames = np.random.default_rng(0).integers(0, 256, (6, 128, 128, 3), np.uint8)
    assert device.opened.learned == ()
    assert not device.recognise(frames[0]).probabilities.any()
    with pytest.raises(InputError, match="empty session"):
        device.learn([], [], training=None)
    with pytest.raises(InputError, match="one label per frame, got 2 for 6"):
        device.learn(frames, ["a", "b"], training=None)
    assert device.vitals().labels == device.opened.labels  # a failed session leaves no trace
    report = device.learn(frames, ["a", "b"] * 3, training=None)
    assert (report.session, report.frames, report.labels) == (1, 6, ("a", "b"))
    vitals = device.vitals()
    assert vitals.learned == ("a", "b")
    strangers = {"tensorflow", "click", "rich", "matplotlib", "PIL", "pytest"}
    assert not vitals.modules & strangers
    assert device.predict(frames[1]).top[0].label == "b"
    np.testing.assert_array_equal(
        device.recognise(frames[0]).probabilities,
        device.answers(device.extract(frames[0])).probabilities,
    )
    assert (device.state / "rival.safetensors").is_file()
