"""The packaged plans can be read, and every cell is valid; none is run."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from lrtflite.errors import InputError
from lrtflite_firmware_sim.experiment.cells import cells_of
from lrtflite_firmware_sim.experiment.plan_file import (
    packaged_plans,
    parse_plan,
    read_plan,
    with_settings,
)
from lrtflite_firmware_sim.experiment_results.plan_report import PlanReport

NAMES = ("memory", "openloris", "rehearsal", "strategies", "summary", "trade-off")
# Values of the paper's tables 1 and 2 and of the authors' curves, by plan and row.
PAPER = {
    ("trade-off", "native rehearsal"): 77.30,
    ("trade-off", "conv5_1/dw"): 72.82,
    ("trade-off", "conv5_4/dw"): 72.24,
    ("trade-off", "conv5_6/dw"): 65.24,
    ("trade-off", "pool6"): 59.76,
    ("summary", "CWR*"): 56.99,
    ("summary", "DSLDA"): 48.02,
    ("summary", "iCaRL"): 15.65,
    ("openloris", "LwF with latent replay (UniBo-Team)"): 97.68,
}


def test_every_plan_is_packaged() -> None:
    assert tuple(packaged_plans()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_cell_is_valid(name: str) -> None:
    plan = read_plan(f"paper:{name}")
    cells = cells_of(plan)
    assert len(cells) == plan.size
    report = PlanReport.of(plan.report)
    assert report.published
    assert report.paper.dataset


def test_plans_have_the_values_of_the_paper() -> None:
    for (plan, row), accuracy in PAPER.items():
        report = PlanReport.of(read_plan(f"paper:{plan}").report)
        assert [each.accuracy for each in report.published if each.name == row] == [accuracy]


def test_the_memory_of_the_paper() -> None:
    plan = read_plan("paper:memory")
    sizes = {(c.axes["strategy"], c.axes["replay-size"]) for c in cells_of(plan)}
    assert sizes == {(s, n) for s in ("cwr", "ar1", "ar1free") for n in (500, 1000, 1500, 3000)}


@pytest.fixture
def core50(tmp_path: Path) -> Path:
    """A small tree of CORe50's layout, with lists of two runs."""
    for scene in (1, 3):
        for thing in (1, 2):
            path = tmp_path / "core50_128x128" / f"s{scene}" / f"o{thing}"
            path.mkdir(parents=True)
            Image.new("RGB", (128, 128)).save(path / f"C_{scene:02d}_{thing:02d}_000.png")
    for run in (0, 1):
        lists = tmp_path / "batches_filelists" / "NIC_v2_391" / f"run{run}"
        lists.mkdir(parents=True)
        for name, scene, thing in (
            ("train_batch_00", 1, 1),
            ("train_batch_01", 1, 2),
            ("test", 3, 1),
        ):
            line = f"s{scene}/o{thing}/C_{scene:02d}_{thing:02d}_000.png {thing - 1}\n"
            (lists / f"{name}_filelist.txt").write_text(line)
    return tmp_path


def test_core50_by_its_path(core50: Path) -> None:
    words = ["seed=0", *(f"dataset=core50:{core50}?run={run}" for run in (0, 1))]
    plan = with_settings(read_plan("paper:strategies"), words)
    cells = cells_of(plan)
    assert len(cells) == 2 * 5
    assert {cell.options["dataset"] for cell in cells} == {word[8:] for word in words[1:]}
    assert {cell.options["seed"] for cell in cells} == {0}


def test_settings_replace_axes_and_options() -> None:
    text = "[fixed]\nepochs = 3\n[grid]\nseed = [1, 2]\nreplay-size = [5, 6]\n"
    plan = with_settings(
        parse_plan(text, where="here"), ["seed=7", "epochs=1", "epochs=2", "lr=0.5"]
    )
    [grid] = plan.grids
    assert grid.axes == {"epochs": (1, 2), "replay-size": (5, 6)}
    assert grid.fixed == {"seed": 7, "lr": 0.5}


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("seed", "Expected --set NAME=VALUE, got 'seed'"),
        ("seed=", "Expected --set NAME=VALUE, got 'seed='"),
        ("seeed=1", "Expected an option of simulate or convert, got 'seeed'; did you mean 'seed'"),
        ("seed=x", "Expected seed as a whole number, got 'x'"),
        ("pooled=yes", "Expected pooled as true or false, got 'yes'"),
    ],
)
def test_an_invalid_setting_is_refused(word: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        with_settings(read_plan("paper:memory"), [word])
    with pytest.raises(InputError, match="Expected each value of seed once, got '1' twice"):
        with_settings(read_plan("paper:memory"), ["seed=1", "seed=1"])
