"""`simulate --diagnose` with a head that keeps sums and no frames."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from coloured_pictures import draw_pictures
from lrtflite.data import open_source, whole_batch
from lrtflite.options import LearnerOptions
from lrtflite_firmware_sim import SimulateOptions, Simulation, simulate
from lrtflite_firmware_sim.reporting.report import html_report
from lrtflite_firmware_sim.reporting.summary import summary

SEED = 3
# The classes of the seed's first and last session.
FIRST, LAST = "amber", "blue"
NOTE = (
    "Diagnosis: No frames are stored of amber, green, red, so what such classes lose is not seen; "
    "a replay size of 200 stores some."
)


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    return draw_pictures(tmp_path / "pictures", classes=4, images=24)


def diagnosed(bundle: Path, pictures: Path, replay_size: int) -> Simulation:
    options = SimulateOptions(
        dataset=f"folder:{pictures}",
        first_classes=2,
        visits=1,
        diagnose=True,
        learner=LearnerOptions(replay_size=replay_size, seed=SEED),
    )
    return simulate(bundle, options)


def test_pictures_in_the_wrong_folder_are_counted(lda: Path, pictures: Path) -> None:
    for path in sorted((pictures / FIRST).iterdir())[:8]:
        shutil.copy(path, pictures / LAST / path.name)
    source = open_source(f"folder:{pictures}", size=16, seed=SEED)
    taught = whole_batch(source)
    wrong = sum(
        source.classes[label] == LAST and frame[..., 0].mean() > frame[..., 2].mean()
        for frame, label in zip(taught.frames(), taught.labels)
    )
    found = diagnosed(lda, pictures, 0)
    assert found.per_session[-1].classes == (LAST,)
    lines = [session.diagnosis for session in found.per_session]
    assert lines == [(), (), (f"{wrong} of 16 frames of {LAST} look like {FIRST}",)]
    assert wrong > 0
    assert found.notes == (NOTE,)
    text = summary(found)
    assert f"note: {NOTE}" in text
    assert f"after session 3: {lines[-1][0]}" in text


def test_a_drop_without_overwriting_is_explained(lda: Path, demo: Path, pictures: Path) -> None:
    said = "no session overwrote another; more classes are harder to tell apart"
    sums, steps = diagnosed(lda, pictures, 0), diagnosed(demo, pictures, 0)
    lines = summary(sums).splitlines()
    [row] = [row for row, line in enumerate(lines) if line.startswith("forgetting ")]
    assert lines[row + 1] == f"  {said}"
    assert said in html_report(sums)
    assert said not in summary(steps) + html_report(steps)


def test_finding_nothing_is_said(lda: Path, pictures: Path) -> None:
    found = diagnosed(lda, pictures, 100)
    assert found.notes == ("Diagnosis: nothing found in the frames of any session.",)
