"""Rows of the paper beside our runs: which, and how they are marked."""

from __future__ import annotations

import pytest

from lrtflite.errors import InputError
from lrtflite.workbench.intervals import Estimate
from lrtflite_firmware_sim.experiment_results.beside_paper import beside_paper, differences, mark
from lrtflite_firmware_sim.experiment_results.plan_report import PlanReport
from lrtflite_firmware_sim.experiment_results.runs import Group, finished, grouped
from made_cells import ROWS, cell


def groups(protocol: str = "nic", values: tuple[float, ...] = (0.56, 0.57, 0.58)) -> list[Group]:
    return grouped(
        finished(
            [
                cell({"strategy": "cwr", "seed": seed}, [value], protocol=protocol)
                for seed, value in enumerate(values)
            ]
        )
    )


def test_marks_by_hand() -> None:
    paper = Estimate.from_spread(0.57, 0.01, 10)
    # Ours 0.60 ± 0.01 (3): error sqrt(0.0001/3 + 0.0001/10) = 0.00658; degrees
    # 1.8778e-9 / (1.1111e-9/2 + 1e-10/9)... = 3.3 -> 3, t = 3.182: half 0.0209 < 0.03.
    assert mark(Estimate.from_spread(0.60, 0.01, 3), paper) == "above"
    assert mark(Estimate.from_spread(0.54, 0.01, 3), paper) == "below"
    assert mark(Estimate.from_spread(0.585, 0.01, 3), paper) == "within"
    # Without a spread on either side, one point counts as none.
    assert mark(Estimate(0.565, 1), Estimate(0.57, 1)) == "within"
    assert mark(Estimate(0.55, 1), Estimate(0.57, 1)) == "below"


def test_rows_of_the_benchmark_that_was_learned() -> None:
    report = PlanReport.of(ROWS)
    rows = beside_paper(report, groups())
    assert [(row.published.name, row.published.accuracy, row.mark) for row in rows] == [
        ("CWR*", 57.0, "within"),
        ("EWC", 5.4, None),
    ]
    other = beside_paper(report, groups("NICv2-79 run 0"))
    assert [(row.published.name, row.published.accuracy) for row in other] == [
        ("CWR*", 60.0),
        ("EWC", 5.4),
    ]
    assert [row.mark for row in beside_paper(report, groups(values=(0.9, 0.9)))] == ["above", None]


def test_it_says_what_differs() -> None:
    report = PlanReport.of(ROWS)
    assert list(differences(report, groups())) == [
        "data: synthetic, not all of CORe50",
        "protocol: nic, not NICv2-391",
        "backbone: mobilenet_v1, demo weights, not imagenet",
        "runs: 3, not 10",
    ]
    assert list(differences(PlanReport(), groups())) == []


@pytest.mark.parametrize(
    ("dataset", "protocol", "said"),
    [
        ("core50:/d?run=3", "NICv2-391 run 3", []),
        ("core50:/d?protocol=79", "NICv2-79 run 0", []),
        (
            "core50:/d?stride=20",
            "NICv2-391 run 0",
            ["data: core50:/d?stride=20, not all of CORe50"],
        ),
        (
            "core50:/d?labels=categories",
            "NICv2-391 run 0, 10 categories",
            [
                "data: core50:/d?labels=categories, not all of CORe50",
                "protocol: NICv2-391 run 0, 10 categories, not NICv2-391",
            ],
        ),
    ],
)
def test_a_part_of_core50_is_not_core50(dataset: str, protocol: str, said: list[str]) -> None:
    report = PlanReport.of({"paper": {"dataset": "CORe50", "protocol": "NICv2-391"}})
    made = cell({"strategy": "cwr"}, [0.5], dataset=dataset, protocol=protocol)
    assert list(differences(report, grouped(finished([made])))) == said


def test_a_typo_is_named() -> None:
    with pytest.raises(InputError, match=r"a key of \[report\], got 'publishd'; did you mean"):
        PlanReport.of({"publishd": []})
    with pytest.raises(InputError, match=r"got 'acuracy'; did you mean 'accuracy'"):
        PlanReport.of({"published": [{"name": "a", "source": "b", "acuracy": 1}]})
    with pytest.raises(InputError, match=r"Expected source in \[\[report.published\]\]"):
        PlanReport.of({"published": [{"name": "a"}]})


@pytest.mark.parametrize(
    ("table", "name"),
    [
        ({"published": [{"name": "a", "source": "b", "accuracy": "87"}]}, "accuracy"),
        ({"published": [{"name": "a", "source": "b", "runs": 2.5}]}, "runs"),
        ({"published": [{"name": "a", "source": "b", "match": "cwr"}]}, "match"),
        ({"published": [{"name": 3, "source": "b"}]}, "name"),
        ({"published": 3}, "published"),
        ({"notes": "one"}, "notes"),
        ({"notes": [1]}, "each note"),
        ({"panels": 3}, "panels"),
        ({"reference": "cwr"}, "reference"),
        ({"paper": {"runs": True}}, "runs"),
        ({"paper": 1}, "paper"),
    ],
)
def test_a_wrong_value_of_the_report_is_told_before_anything_runs(
    table: dict[str, object], name: str
) -> None:
    with pytest.raises(InputError, match=f"Expected .*{name}.*, got"):
        PlanReport.of(table)
