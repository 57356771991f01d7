"""The files of results in the folder of an experiment, written by hand."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from lrtflite.errors import InputError
from lrtflite_firmware_sim.experiment.plan_file import parse_plan
from lrtflite_firmware_sim.experiment_results import writing
from lrtflite_firmware_sim.experiment_results.writing import check_report, write_results
from made_cells import cell

PLAN = """
title = "Made"
[fixed]
dataset = "synthetic"
[grid]
policy = ["algorithm1", "=balanced"]
seed = [0, 1]
[report]
reference = { policy = "algorithm1" }
[report.paper]
dataset = "CORe50"
[[report.published]]
name = "a row"
source = "table 9"
match = { policy = "algorithm1" }
accuracy = 50.5
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    cells = [
        cell({"policy": policy, "seed": seed}, [0.2, value])
        for policy, values in (("algorithm1", (0.5, 0.52)), ("=balanced", (0.6, 0.7)))
        for seed, value in enumerate(values)
    ]
    (tmp_path / "cells").mkdir()
    for made in cells:
        (tmp_path / "cells" / f"{made.digest}.json").write_text(json.dumps(made.record))
    index = {
        "format": 1,
        "title": "Made",
        "about": None,
        "axes": ["policy", "seed"],
        "cells": [
            {"digest": made.digest, "options": made.options, "axes": made.axes} for made in cells
        ],
        "versions": {},
    }
    (tmp_path / "experiment.json").write_text(json.dumps(index))
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


def test_all_files(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    assert write_results(folder).splitlines() == [
        "row of the paper  ours is  paper, %     ours, %  difference  our run            source",
        "a row             within       50.5  51.0 ± 1.4        +0.5  policy algorithm1  table 9",
        "",
        "Our setting differs from the paper's:",
        "- data: synthetic, not all of CORe50",
    ]
    lines = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    assert [line["final_accuracy"] for line in lines] == [0.5, 0.52, 0.6, 0.7]
    with (folder / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["final_accuracy"]) for row in rows] == [0.5, 0.52, 0.6, 0.7]
    # A spreadsheet must not run a value as a formula.
    assert [row["option:policy"] for row in rows[1:3]] == ["algorithm1", "'=balanced"]
    assert (folder / "results.md").read_text().startswith("# Made\n\n4 of 4 runs done.\n")
    assert r"\toprule" in (folder / "results.tex").read_text()
    page = (folder / "results.html").read_text()
    assert "<h1>Made</h1>" in page
    assert "policy =balanced" in page


def test_without_matplotlib_there_is_no_page(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "can_plot", lambda: False)
    write_results(folder)
    assert (folder / "results.md").exists()
    assert not (folder / "results.html").exists()


def test_a_typo_in_the_report_is_found_before_anything_runs() -> None:
    plan = parse_plan(PLAN.replace("accuracy", "accurracy"), where="here")
    with pytest.raises(InputError, match=r"got 'accurracy'; did you mean 'accuracy'"):
        check_report(plan)
