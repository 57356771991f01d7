"""The costs of a bundle are measured, kept in its manifest and shown."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from lrtflite import Learner
from lrtflite.bundle.bundle import Bundle
from lrtflite.bundle.costs import Costs
from lrtflite.bundle.manifest_json import read_manifest
from lrtflite.errors import InputError
from lrtflite.session.session import Session
from lrtflite.workbench.measuring import measure_costs

COSTS = Costs("a board", "litert 9", 2, 4.0, 0.5, 52, 0.25, 98.5, 6.15)


def test_the_time_of_a_session_is_estimated(demo: Path, runtime: str) -> None:
    found = measure_costs(demo, runtime=runtime)
    # 25 new patterns and 1,500 stored ones: 2 of 120 places are new, 13 steps per epoch, 4 epochs.
    assert found.steps == 52
    assert 0 < found.step_ms < 1e3 * found.session_s < 60_000
    # A row is its latent, the slot of its class and the policy's mark.
    assert found.memory_mb == pytest.approx(1500 * (256 * 4 + 4 + 4) / 1e6)
    assert found.ram_mb > 20
    assert found.extract_ms > 0


def test_a_bundle_without_a_free_slot_is_measured_too(demo: Path, tmp_path: Path) -> None:
    with Learner.open(demo) as learner:
        for slot in range(50):
            learner.rename(new=f"thing {slot}", slot=slot)
        full = learner.ship(tmp_path / "full")
    assert measure_costs(full.path).steps == 52


def test_a_session_pays_for_each_of_its_steps(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of a step includes the assembly of its mini-batch."""

    class Slow(Session):
        def since(self, started: float) -> float:
            return 1000.0  # milliseconds for everything that is timed

    monkeypatch.setattr("lrtflite.learner.Session", Slow)
    found = measure_costs(demo)
    assert found.step_ms == 2000.0
    # The measured session of two patterns is six steps, one new pattern in each, three epochs.
    assert found.session_s == pytest.approx(1.0 - 6 * 2.0 + 52 * 2.0)


def test_the_manifest_keeps_it(demo: Path) -> None:
    manifest = replace(Bundle.open(demo).manifest, measured=COSTS)
    assert read_manifest(manifest.to_json(), where="here").measured == COSTS
    assert json.loads(manifest.to_json())["measured"]["step_ms"] == 0.5
    assert str(COSTS) == (
        "4.0 ms per frame, 0.5 ms per training step, 0.25 s per session of 25 frames "
        "(up to 52 steps), 98 MB RAM, 6.2 MB of replay memory on disk "
        "(litert 9, 2 threads, a board)"
    )


def test_a_head_that_takes_no_steps_has_no_time_of_a_step() -> None:
    assert str(replace(COSTS, steps=0, step_ms=0.0)) == (
        "4.0 ms per frame, 0.25 s per session of 25 frames, 98 MB RAM, "
        "6.2 MB of replay memory on disk (litert 9, 2 threads, a board)"
    )


@pytest.mark.parametrize("wrong", [{"steps": "many"}, {"ram_mb": None}])
def test_invalid_costs(wrong: dict[str, object]) -> None:
    with pytest.raises((InputError, ValueError)):
        Costs.from_json({**asdict(COSTS), **wrong})


def test_unknown_costs_are_ignored_and_missing_ones_refused() -> None:
    fields = asdict(COSTS)
    assert Costs.from_json({**fields, "later": [1]}) == COSTS
    del fields["ram_mb"]
    with pytest.raises(ValueError, match="measured lacks ram_mb"):
        Costs.from_json(fields)
