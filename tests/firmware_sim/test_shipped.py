"""Simulations of bundles that ship with classes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lrtflite import Learner
from lrtflite.bundle.bundle import demo_bundle
from lrtflite.data import open_source
from lrtflite.workbench.teaching import teach
from lrtflite_firmware_sim import SimulateOptions, Simulation, load_simulation, simulate
from lrtflite_firmware_sim.reporting.report import html_report
from lrtflite_firmware_sim.reporting.summary import summary


@pytest.fixture(scope="module")
def shipped(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Teach a bundle two of the four colours."""
    folder = tmp_path_factory.mktemp("shipped")
    (folder / "two").mkdir()
    for name in ("blue", "red"):
        (folder / "two" / name).symlink_to(pictures / name)
    with demo_bundle() as demo, Learner.open(demo) as desk:
        source = open_source(f"folder:{folder / 'two'}", size=128, seed=3)
        return teach(desk, source, folder / "bundle").bundle.path


@pytest.fixture(scope="module")
def result(shipped: Path, options: SimulateOptions) -> Simulation:
    return simulate(shipped, replace(options, first_classes=None, visits=1))


def test_known_classes_are_tested_from_the_start(result: Simulation) -> None:
    assert result.start is not None
    assert result.start.classes == ("blue", "red")
    assert result.start.accuracy_known == 1.0
    # Half of the test set belongs to the two classes that are not taught yet.
    assert result.start.accuracy == 0.5


def test_known_classes_are_not_taught_again(result: Simulation) -> None:
    assert [session.classes for session in result.per_session] in (
        [("amber",), ("green",)],
        [("green",), ("amber",)],
    )
    assert [session.session for session in result.per_session] == [1, 2]
    assert [session.classes_seen for session in result.per_session] == [3, 4]
    assert {c.name: c.first_session for c in result.per_class}["blue"] == 0
    assert {c.name: c.first_session for c in result.per_class}["red"] == 0
    assert result.per_session[-1].accuracy_first > 0.7


def test_later_visits_bring_them_again(shipped: Path, options: SimulateOptions) -> None:
    found = simulate(shipped, replace(options, first_classes=None, visits=2))
    taught = [name for session in found.per_session for name in session.classes]
    assert {name: taught.count(name) for name in taught} == {
        "amber": 2,
        "blue": 1,
        "green": 2,
        "red": 1,
    }


def test_the_report_shows_their_curve(result: Simulation, tmp_path: Path) -> None:
    text = summary(result)
    assert "classes it shipped with" in text
    assert "100.0% at the start" in text
    assert "first classes" not in text
    assert "The bundle knows 2 of the 4 classes" in text
    assert "classes it shipped with" in html_report(result)
    (tmp_path / "r.json").write_text(result.to_json())
    assert load_simulation(tmp_path / "r.json") == result


def test_a_bundle_that_knows_nothing_has_no_start(simulated: Simulation) -> None:
    assert simulated.start is None
    assert "shipped" not in summary(simulated)


def test_what_is_not_in_the_data_set_is_not_tested_and_that_is_said(
    shipped: Path, pictures: Path, options: SimulateOptions
) -> None:
    others = replace(options, dataset=f"folder:{pictures}?classes=amber,green", visits=1)
    found = simulate(shipped, others)
    assert found.start is None
    assert any(note.startswith("None of the 2 classes that the bundle") for note in found.notes)
