"""Cells as runs and groups, against the figures in the made results."""

from __future__ import annotations

import pytest

from lrtflite_firmware_sim.experiment_results.runs import Run, finished, grouped
from made_cells import MadeCell, cell, failed


def test_the_values_of_a_run() -> None:
    run = Run.of(cell({"strategy": "cwr", "seed": 3}, [0.4, 0.5, 0.55], parameter_bytes=200_000))
    assert run.curve == (0.4, 0.5, 0.55)
    # Classes known after each session: 0.8; (0.6+0.5)/2; (0.4+0.7)/2.
    assert run.values["average_accuracy"] == pytest.approx((0.8 + 0.55 + 0.55) / 3)
    # Class a: 0.4 - 0.8; class b: 0.7 - 0.5. Nothing was known of b before.
    assert run.values["backward_transfer"] == pytest.approx(-0.1)
    assert run.values["forward_transfer"] == 0
    assert run.values["data_mb"] == 6
    assert run.values["parameters_mb"] == pytest.approx(0.2)
    # 1,500 + 500 ms outside extraction; 300 frames of 8 ms.
    assert run.values["training_s"] == pytest.approx(2.0)
    assert run.values["extraction_s"] == pytest.approx(2.4)
    line = run.line()
    assert line["option:seed"] == 3
    assert line["strategy"] == "cwr"


def test_an_older_result_has_fewer_values() -> None:
    run = Run.of(cell({"seed": 0}, [0.5], class_accuracy=(), phase_ms={}))
    missing = {"average_accuracy", "backward_transfer", "training_s", "parameters_mb"}
    assert not missing & set(run.values)
    assert run.values["final_accuracy"] == 0.5


def test_seeds_and_published_runs_repeat() -> None:
    cells = [
        cell({"dataset": data, "strategy": strategy, "seed": seed}, [value])
        for data, seed, value in (
            ("core50:/d?protocol=391&run=0", 0, 0.5),
            ("core50:/d?protocol=391&run=1", 0, 0.7),
            ("core50:/d?protocol=79", 0, 0.1),
        )
        for strategy in ("cwr", "lda")
    ]
    groups = grouped(finished(cells))
    assert [(group.label, len(group.runs)) for group in groups] == [
        ("dataset core50:/d?protocol=391, cwr", 2),
        ("dataset core50:/d?protocol=391, lda", 2),
        ("dataset core50:/d?protocol=79, cwr", 1),
        ("dataset core50:/d?protocol=79, lda", 1),
    ]
    estimate = groups[0].estimate("final_accuracy")
    assert estimate is not None
    assert estimate.mean == pytest.approx(0.6)


def test_groups_of_two_grids_are_told_apart_by_what_differs() -> None:
    both = {"dataset": "synthetic", "lr": 0.1}
    cells = [
        cell({"seed": 0}, [0.5], options={**both, "strategy": "cwr"}),
        cell({"seed": 1}, [0.7], options={**both, "strategy": "cwr"}),
        cell({"seed": 0, "policy": "balanced"}, [0.5], options={**both, "strategy": "naive"}),
    ]
    found = [(group.label, len(group.runs)) for group in grouped(finished(cells))]
    assert found == [("cwr", 2), ("naive, policy balanced", 1)]


def test_groups_are_compared_seed_by_seed() -> None:
    cells: list[MadeCell] = []
    for strategy, values in (("naive", (0.1, 0.2, 0.3)), ("cwr", (0.4, 0.6, 0.5))):
        cells += [
            cell({"strategy": strategy, "seed": seed}, [value]) for seed, value in enumerate(values)
        ]
    # In another order, and with a seed that only one of them has.
    cells = [*reversed(cells), cell({"strategy": "cwr", "seed": 9}, [0.99])]
    found = {group.label: group for group in grouped(finished(cells))}
    difference = found["cwr"].against(found["naive"])
    assert difference is not None
    # 0.3, 0.4, 0.2: mean 0.3, deviation 0.1, 4.303 * 0.1 / sqrt(3).
    assert difference.mean == pytest.approx(0.3)
    assert difference.half == pytest.approx(0.24843, abs=1e-5)
    assert (difference.n, difference.p) == (3, 0.25)


def test_the_mean_curve_and_its_spread() -> None:
    cells = [cell({"seed": 0}, [0.2, 0.4]), cell({"seed": 1}, [0.4, 0.8, 0.9])]
    [group] = grouped(finished([*cells, failed({"seed": 2}, "no room")]))
    mean, spread = group.mean_curve()
    assert mean.tolist() == pytest.approx([0.3, 0.6])
    # Sample deviation of two values: their distance over the root of 2.
    assert spread.tolist() == pytest.approx([0.2 / 2**0.5, 0.4 / 2**0.5])
