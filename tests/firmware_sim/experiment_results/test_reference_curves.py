"""Published curves: a made file of the same form, and the real one where it is."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from lrtflite.errors import DataError
from lrtflite_firmware_sim.experiment.plan_file import packaged_plans, read_plan
from lrtflite_firmware_sim.experiment_results.beside_paper import beside_paper
from lrtflite_firmware_sim.experiment_results.plan_report import PlanReport
from lrtflite_firmware_sim.experiment_results.reference_curves import (
    published_curves,
    read_curves,
)
from lrtflite_firmware_sim.experiment_results.runs import finished, grouped
from made_cells import cell

SHARED = Path(os.environ.get("LRTFLITE_SHARED") or Path(__file__).resolve().parents[4] / "shared")
REAL = SHARED / "data" / "core50_nicv2_reference_curves.zip"
LINE = "#" * 35
MADE = (
    f"{LINE}\n# scenario: NICv2 - 79\n# net: MobileNet v1\n# strategy: AR1*\n{LINE}\n"
    f"7,174\t14\t63,5\n7,174\t14\t64,5\n"
    f"{LINE}\n# scenario: NICv2 - 79\n# net: MobileNet v1\n# strategy: CWR*\n{LINE}\n8\t14\t57\n"
)


def test_a_made_file(tmp_path: Path) -> None:
    path = tmp_path / "curves.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("results_79_multirun.tsv", MADE)
    curves = published_curves(path, "NICv2-79")
    assert list(curves) == ["AR1*", "CWR*"]
    assert curves["AR1*"].tolist() == [
        pytest.approx([0.07174, 0.14, 0.635]),
        pytest.approx([0.07174, 0.14, 0.645]),
    ]
    with pytest.raises(DataError, match="the published curves of NICv2-391 in"):
        published_curves(path, "NICv2-391")
    (tmp_path / "no.zip").write_bytes(b"PK")
    with pytest.raises(DataError, match="the published curves of NICv2-79 in"):
        published_curves(tmp_path / "no.zip", "NICv2-79")


def test_only_curves_of_the_same_benchmark_are_drawn(tmp_path: Path) -> None:
    path = tmp_path / "curves.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("results_79_multirun.tsv", MADE)
    row = {"name": "a", "source": "b", "match": {"strategy": "cwr"}, "curve": "CWR*"}
    report = PlanReport.of({"published": [{**row, "benchmark": "NICv2-79"}]})

    def found(protocol: str) -> dict[str, list[list[float]]]:
        groups = grouped(finished([cell({"strategy": "cwr"}, [0.5], protocol=protocol)]))
        curves = read_curves(path, beside_paper(report, groups))
        return {name: runs.tolist() for name, runs in curves.items()}

    assert found("NICv2-79 run 0") == {"a": [[0.14, 0.57]]}
    assert found("nic") == {}


@pytest.mark.skipif(not REAL.exists(), reason=f"needs {REAL}")
@pytest.mark.parametrize("name", sorted(packaged_plans()))
def test_the_end_values_in_the_plans_are_those_of_the_curves(name: str) -> None:
    report = PlanReport.of(read_plan(f"paper:{name}").report)
    for row in report.published:
        if row.curve:
            ends = published_curves(REAL, row.benchmark)[row.curve][:, -1]
            assert len(ends) == row.runs == 10
            assert row.accuracy == pytest.approx(100 * ends.mean(), abs=0.006)
            assert row.std == pytest.approx(100 * ends.std(ddof=1), abs=0.006)
