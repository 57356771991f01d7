"""Plan files: names, values, grids, and what is refused."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from lrtflite.errors import InputError, LrtfliteError
from lrtflite_cli.commands import convert, simulate
from lrtflite_firmware_sim.experiment.cells import cells_of
from lrtflite_firmware_sim.experiment.names import known_options
from lrtflite_firmware_sim.experiment.plan_file import PlanFile, parse_plan, read_plan

# Options of a command that decide where results go, or whom to trust, but no result.
NOT_IN_PLANS = {"json", "report", "require-signature", "out", "replace", "rate"}


def plan(text: str) -> PlanFile:
    return parse_plan(text, where="plan.toml")


def test_names_are_those_of_simulate_and_convert() -> None:
    commands: list[click.Command] = [simulate.command, convert.command]
    flags = {
        parameter.opts[0].removeprefix("--")
        for command in commands
        for parameter in command.params
        if isinstance(parameter, click.Option)
    }
    assert set(known_options()) == (flags - NOT_IN_PLANS) | {"bundle"}


def test_a_grid_has_every_combination_and_the_last_axis_is_fastest() -> None:
    found = plan(
        """
        title = "Memory"
        dataset = "synthetic?frames=2"
        [fixed]
        first-classes = 2
        rate.momentum = 0.5
        [grid]
        replay-size = [10, 20]
        seed = [0, 1, 2]
        protocol = "nic"
        """
    )
    assert (found.title, found.axes, found.size) == ("Memory", ("replay-size", "seed"), 6)
    [grid] = found.grids
    assert [tuple(point.values()) for point in grid.points()] == [
        (10, 0),
        (10, 1),
        (10, 2),
        (20, 0),
        (20, 1),
        (20, 2),
    ]
    assert grid.fixed == {
        "dataset": "synthetic?frames=2",
        "first-classes": 2,
        "rate.momentum": 0.5,
        "protocol": "nic",
    }


def test_several_grids_are_joined_and_a_cell_comes_once() -> None:
    found = plan(
        """
        dataset = "synthetic?frames=2"
        [[grid]]
        seed = [0, 1]
        [[grid]]
        seed = [1, 2]
        replay-size = 50
        [[grid]]
        replay-size = [50]
        seed = [2]
        """
    )
    cells = cells_of(found)
    assert [cell.options.get("seed") for cell in cells] == [0, 1, 1, 2]
    assert [cell.options.get("replay-size") for cell in cells] == [None, None, 50, 50]


def test_a_plan_without_a_grid_is_one_cell() -> None:
    [cell] = cells_of(plan('dataset = "synthetic?frames=2"'))
    assert cell.axes == {}


def test_the_report_is_for_readers_and_decides_nothing() -> None:
    text = '[fixed]\ndataset = "synthetic?frames=2"\n'
    with_report = plan(f"{text}[report]\nanything = [1, 2]")
    assert with_report.report == {"anything": [1, 2]}
    assert cells_of(with_report)[0].digest == cells_of(plan(text))[0].digest


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[grid]\nreplay-sise = [1]", "got 'replay-sise'; did you mean 'replay-size'?"),
        ("replay_size = 1", "did you mean 'replay-size'?"),
        ("[fixd]\nseed = 1", "Expected a table [fixed], got [fixd]"),
        ("[gird]\nseed = [1]", "Expected a table [grid], got [gird]"),
        ("[fixed]\nseed = [1]", "Expected one value for seed, got a list; move it to [grid]"),
        ("[grid]\nseed = []", "Expected at least one value for seed"),
        ("[grid]\nseed = [1, 1]", "Expected each value of seed once, got 1 twice"),
        ('[grid]\nseed = ["1"]', "Expected seed as a whole number, got '1'"),
        ("[grid]\nseed = [true]", "Expected seed as a whole number, got True"),
        ("[grid]\ndataset = [1]", "Expected dataset as text, got 1"),
        ("diagnose = 1", "Expected diagnose as true or false, got 1"),
        ("rate = 0.1", "Expected rates as rate.NAME = VALUE"),
        ('rate.momentum = "high"', "Expected rate.momentum as a number"),
        ("seed = 1\n[fixed]\nseed = 2", "Expected seed once"),
        ("seed = ", "Expected a plan in TOML"),
        ("title = 3", "Expected title as text"),
        ("grid = 3", "Expected [grid] as a table"),
        ("report = 3", "Expected [report] as a table"),
    ],
)
def test_what_cannot_be_read_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=r"plan\.toml") as refused:
        plan(text)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('dataset = "syntetic"', "did you mean 'synthetic'?"),
        ('protocol = "nik"', "Expected a protocol of nic, ni, app, got 'nik'"),
        ('policy = "balansed"', "did you mean 'balanced'?"),
        ('[grid]\nrival = ["icarl", "icral"]', "did you mean 'icarl'? (in the cell rival=icral"),
        ('strategy = "cwrr"', "did you mean 'cwr'?"),
        ('network = "mobilenet_v3"', "did you mean 'mobilenet_v2'?"),
        ('replay-layer = "conv9"', "conv9"),
        ('codec = "zip"', "Expected a codec of"),
        ('strategy = "cwr"\nrate.momentun = 0.5', "did you mean 'momentum'?"),
        ("rate.momentun = 0.5", "did you mean 'momentum'?"),
        ('quantize = "int8"', "Expected --calibrate DATASET"),
        ("input-size = -5", "got -5"),
        ("replay-size = -1", "got -1"),
        ('bundle = "nowhere"', "nowhere"),
        ('bundle = "demo"\nstrategy = "ar1"', "Expected bundle, or options of convert"),
        ("lr = 0.1\nrate.lr = 0.2", "Expected lr once"),
        ('dataset = "folder:nowhere"', "nowhere"),
        ('dataset = "core50:nowhere"', "nowhere"),
    ],
)
def test_a_value_that_does_not_exist_is_refused(text: str, said: str) -> None:
    # Errors that name a cell put it after the problem, before the advice.
    with pytest.raises(LrtfliteError) as refused:
        cells_of(plan(text))
    head, _, tail = said.partition(" (in")
    assert head in str(refused.value)
    assert tail in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_huge_grid_needs_a_yes() -> None:
    huge = plan(f"[grid]\nseed = {list(range(101))}\nsplit-seed = {list(range(100))}")
    with pytest.raises(InputError, match="at most 10,000 cells, got 10,100; give --yes"):
        cells_of(huge)


def test_a_missing_plan_says_how_to_write_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--init PLAN\.toml"):
        read_plan(tmp_path / "plan.toml")
    with pytest.raises(InputError, match=r"Expected a plan of .*, got paper:nothing"):
        read_plan("paper:nothing")
