"""Tables as Markdown, LaTeX and HTML, and the page that shows them."""

from __future__ import annotations

import re

import pytest

from lrtflite_firmware_sim.experiment_results.page import Results, html_page
from lrtflite_firmware_sim.experiment_results.plan_report import PlanReport
from lrtflite_firmware_sim.experiment_results.tables import Table
from lrtflite_firmware_sim.experiment_results.writing import markdown
from made_cells import ROWS, cell, failed

TABLE = Table("Name", "50 % of a_b.", ("run", "n"), (("a_b & <c> | d", "1 ± 2"),))


def results() -> Results:
    cells = [
        cell({"strategy": strategy, "seed": seed}, [0.2, value], parameter_bytes=200_000)
        for strategy, values in (("cwr", (0.56, 0.57, 0.58)), ("naive", (0.1, 0.12, 0.11)))
        for seed, value in enumerate(values)
    ]
    cells.append(failed({"strategy": "ewc", "seed": 0}, "Expected <this>, got that"))
    report = PlanReport.of({**ROWS, "reference": {"strategy": "naive"}, "notes": ["A note."]})
    return Results.of("A title", "About it.", report, cells)


def test_markdown() -> None:
    assert TABLE.markdown().splitlines() == [
        "**Name.** 50 % of a_b.",
        "",
        "| run | n |",
        "| --- | ---: |",
        "| a_b & <c> / d | 1 ± 2 |",
    ]


def test_latex_is_escaped() -> None:
    lines = TABLE.latex().splitlines()
    assert r"\caption{Name. 50 \% of a\_b.}" in lines
    assert r"\begin{tabular}{lr}" in lines
    assert r"a\_b \& <c> | d & 1 $\pm$ 2 \\" in lines


def test_html_is_escaped() -> None:
    assert "&lt;c&gt; | d" in TABLE.html()
    assert "<c>" not in TABLE.html()


def test_all_tables_of_an_experiment() -> None:
    found = {table.name: table for table in results().tables}
    assert list(found) == ["Beside the paper", "Results", "Compared with naive"]
    assert found["Beside the paper"].rows == (
        ("CWR*", "within", "57.0 ± 1.0", "57.0 ± 1.0", "+0.0", "cwr", "curves"),
        ("EWC", "not run", "5.4", "-", "-", "-", "curves"),
    )
    # 0.46, 0.45, 0.47: mean 46 points, deviation 1 point, 4.303 / sqrt(3) = 2.48.
    assert found["Compared with naive"].rows == (("cwr", "3", "+46.0 ± 2.5", "0.250", "yes"),)
    assert [row[:3] for row in found["Results"].rows] == [
        ("cwr", "3", "57.0 ± 1.0"),
        ("naive", "3", "11.0 ± 1.0"),
    ]


def test_markdown_of_an_experiment() -> None:
    text = markdown(results())
    assert text.startswith("# A title\n\nAbout it. 6 of 7 runs done, 1 failed.\n")
    assert "- data: synthetic, not all of CORe50\n" in text
    assert "- strategy=ewc, seed=0: Expected <this>, got that\n" in text


def test_the_page_has_everything_and_no_foreign_markup() -> None:
    pytest.importorskip("matplotlib")
    page = html_page(results())
    assert page.count("<svg") == 3
    assert "Expected &lt;this&gt;, got that" in page
    assert 'data-mark="within"' in page
    assert page == html_page(results()), "the same results give the same page"
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert not re.search(r'(src|href)="?http|url\(["\']?http|@import', page), "nothing is fetched"


def test_a_page_without_finished_runs() -> None:
    empty = Results.of(None, None, PlanReport(), [failed({"seed": 0}, "no room")])
    assert "0 of 1 run done, 1 failed" in html_page(empty)
    assert markdown(empty).startswith("# Experiment")


def test_computation_and_storage_beside_table_1() -> None:
    published = [
        {
            "name": layer,
            "source": "table 1",
            "match": {"replay-layer": layer},
            "computation": share,
            "pattern-size": size,
        }
        for layer, share, size in (("images", 100, 49152), ("pool6", 0.027, 1024))
    ]
    cells = [
        cell({"replay-layer": layer, "seed": 0}, [0.5], phase_ms={"train": ms})
        for layer, ms in (("images", 8000.0), ("pool6", 20.0))
    ]
    report = PlanReport.of({"published": published})
    found = {table.name: table for table in Results.of("t", "", report, cells).tables}
    # 20 of 8,000 ms are 0.25 %; the made latents have 1,024 values.
    assert found["Computation and storage"].rows == (
        ("images", "100", "100.0", "49,152", "1,024", "6.0"),
        ("pool6", "0.027", "0.2", "1,024", "1,024", "6.0"),
    )
