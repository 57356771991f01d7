"""The function `simulate`: its measurements, and that they are those of the learner."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lrtflite import Learner
from lrtflite.bundle.bundle import demo_bundle
from lrtflite.data import StreamOptions, make_stream, open_source
from lrtflite.errors import BundleError
from lrtflite.runtime.model import describe_runtime, installed_runtimes
from lrtflite_firmware_sim import SimulateOptions, Simulation, simulate

TIMED = ("latency_ms", "phase_ms", "session_ms", "session_ms_p50", "peak_ram_mb")


def learned(result: Simulation) -> dict[str, Any]:
    """Return the results without those that depend on a clock or on RAM."""
    found = {k: v for k, v in json.loads(result.to_json()).items() if k not in TIMED}
    for session in found["accuracy"]:
        del session["session_ms"]
    return found


def test_json_has_the_promised_fields(simulated: Simulation) -> None:
    found = json.loads(simulated.to_json())
    assert 0 <= found["final_accuracy"] <= 1
    assert 0 <= found["forgetting"] <= 1
    assert [row["session"] for row in found["accuracy"]] == [1, 2, 3, 4, 5, 6, 7]
    assert all({"session", "accuracy", "classes_seen"} <= set(row) for row in found["accuracy"])
    phases = {"extract", "prepare", "train", "consolidate", "checkpoint", "infer"}
    assert phases <= set(found["latency_ms"])
    for spread in (*found["latency_ms"].values(), found["session_ms"]):
        assert set(spread) == {"p50", "p95", "n"}
        assert 0 < spread["p50"] <= spread["p95"]
    assert found["session_ms_p50"] == found["session_ms"]["p50"]
    assert found["runtime"] in ("litert", "tflite")
    assert found["threads"] == 1
    assert found["seed"] == 3
    assert found["machine"]["cores"] >= 1
    # A Python process with numpy and a runtime; the whole of TensorFlow would take 400 MB.
    assert 25 < found["peak_ram_mb"] < 250


def test_every_frame_step_and_session_is_timed(simulated: Simulation) -> None:
    count = {phase: spread.n for phase, spread in simulated.latency_ms.items()}
    # Four classes of 8 training pictures, in 7 sessions.
    assert count["extract"] == 32 == sum(session.frames for session in simulated.per_session)
    assert count["train"] == count["prepare"] == sum(s.steps for s in simulated.per_session)
    assert count["consolidate"] == count["checkpoint"] == simulated.session_ms.n == 7


def test_replay_memory_is_counted_in_bytes(simulated: Simulation) -> None:
    # 20 of the 32 frames fit: a float32 latent, an int32 slot and an int32 mark each.
    latent = int(np.prod(simulated.bundle.latent_shape))
    assert simulated.replay_patterns == simulated.replay_size == 20
    assert simulated.replay_bytes == 20 * (4 * latent + 8)


def test_it_is_the_learner_that_is_simulated(
    simulated: Simulation, options: SimulateOptions
) -> None:
    """Learn the same stream in this process, without a device, and test frame by frame."""
    source = open_source(options.dataset, seed=3)
    sessions = []
    with demo_bundle() as bundle, Learner.open(bundle, replay_size=20, seed=3) as learner:
        for batch in make_stream(source, StreamOptions(first_classes=2, seed=3)):
            learner.learn(batch.frames(), [source.classes[label] for label in batch.labels])
            right = []
            for clip in source.test_clips():
                [[best, *_]] = learner.predict(next(iter(clip.read())))
                right.append((source.classes[clip.label], best.label == source.classes[clip.label]))
            sessions.append(right)
    for right, session in zip(sessions, simulated.per_session):
        assert session.accuracy == pytest.approx(np.mean([good for _, good in right]))
        first = set(simulated.per_session[0].classes)
        assert session.accuracy_first == pytest.approx(
            np.mean([good for name, good in right if name in first])
        )
    seen = set(simulated.per_session[0].classes)
    for session in simulated.per_session:
        seen |= set(session.classes)
        assert session.classes_seen == len(seen)


def test_accuracies_agree_with_each_other(simulated: Simulation) -> None:
    for session in simulated.per_session:
        # Four test pictures of each of four classes; classes not taught yet are never right.
        assert session.accuracy * 4 == pytest.approx(session.accuracy_seen * session.classes_seen)
    assert simulated.final_accuracy == simulated.per_session[-1].accuracy
    assert simulated.final_accuracy == pytest.approx(
        np.mean([found.final_accuracy for found in simulated.per_class])
    )
    taught = [name for session in simulated.per_session for name in session.new_classes]
    assert sorted(taught) == sorted(found.name for found in simulated.per_class)


def test_the_seed_decides_everything(simulated: Simulation, options: SimulateOptions) -> None:
    assert learned(simulate(None, options)) == learned(simulated)
    other = learned(simulate(None, replace(options, learner=replace(options.learner, seed=4))))
    assert [s["classes"] for s in other["accuracy"]] != [s.classes for s in simulated.per_session]


def test_options_reach_the_device(options: SimulateOptions) -> None:
    given = {"epochs": 30, "lr": 0.05, "momentum": 0.5}
    few = replace(
        options,
        sessions=2,
        visits=1,
        rates=given,
        learner=replace(options.learner, policy="balanced", replay_size=5),
    )
    result = simulate(None, few)
    assert (result.sessions, result.sessions_in_stream) == (2, 3)
    assert result.training.items() >= given.items()
    assert (result.policy, result.replay_patterns) == ("balanced", 5)
    assert [session.steps for session in result.per_session] == [30, 30]
    assert result.per_session[-1].classes_seen == 3
    assert sum(found.first_session is None for found in result.per_class) == 1


@pytest.mark.parametrize("runtime", installed_runtimes())
def test_each_runtime(options: SimulateOptions, runtime: str) -> None:
    learner = replace(options.learner, runtime=runtime, replay_size=0)
    result = simulate(None, replace(options, sessions=2, learner=learner))
    assert result.runtime == runtime
    assert result.versions["runtime"] == describe_runtime(runtime)
    assert (result.replay_patterns, result.replay_bytes) == (0, 0)


def test_no_such_bundle(options: SimulateOptions) -> None:
    with pytest.raises(BundleError, match="Expected a bundle folder"):
        simulate("no/such/bundle", options)


def test_demo_bundle_is_said(simulated: Simulation) -> None:
    assert simulated.bundle.demo
    assert "demo bundle" in simulated.notes[0]
