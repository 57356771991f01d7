"""Write the results of an experiment into its folder: CSV, JSON lines, tables and a page."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lrtflite.files.atomic import write_atomic, writing
from lrtflite_firmware_sim.experiment.folder import read_cells
from lrtflite_firmware_sim.experiment.plan_file import PlanFile
from lrtflite_firmware_sim.experiment_results.page import Results, html_page
from lrtflite_firmware_sim.experiment_results.plan_report import PlanReport
from lrtflite_firmware_sim.experiment_results.reference_curves import check_curves, read_curves
from lrtflite_firmware_sim.reporting.plot import can_plot

CSV, LINES, MARKDOWN, LATEX, PAGE = (
    f"results.{ending}" for ending in ("csv", "jsonl", "md", "tex", "html")
)


def check_report(plan: PlanFile, *, curves: str | Path | None = None) -> None:
    """Raise LrtfliteError for a wrong [report] table or file of curves, before anything runs."""
    PlanReport.of(plan.report)
    if curves is not None:
        check_curves(curves)


def write_results(folder: str | Path, *, curves: str | Path | None = None) -> str:
    """Write the results of the cells that are done; return the first table as text.

    `curves` is the authors' file of curves, whose means are drawn beside ours where a row of the
    plan names a curve. The page needs matplotlib.
    """
    path = Path(folder)
    results = read_results(path)
    lines = [run.line() for group in results.groups for run in group.runs]
    files = {
        CSV: _csv(lines),
        LINES: "".join(json.dumps(line) + "\n" for line in lines),
        MARKDOWN: markdown(results),
        LATEX: "\n".join(table.latex() for table in results.tables),
    }
    if can_plot():
        published = None if curves is None else read_curves(curves, results.rows)
        files[PAGE] = html_page(results, published)
    for name, content in files.items():
        with writing(path / name):
            write_atomic(path / name, content)
    return _first_table(results)


def read_results(folder: str | Path) -> Results:
    """Return the results in the folder of an experiment."""
    found = read_cells(folder)
    return Results.of(found.title, found.about, PlanReport.of(found.report), found.cells)


def markdown(results: Results) -> str:
    """Return all tables as Markdown, with the differences from the paper's setting."""
    parts = [f"# {results.title}", ""]
    parts += [f"{results.about} {results.status}.".strip(), ""]
    for table in results.tables:
        parts.append(table.markdown())
        if results.differences and table.name == "Beside the paper":
            parts += ["Our setting differs from the paper's:", ""]
            parts += [*(f"- {line}" for line in results.differences), ""]
    if results.failed:
        parts += ["Failed runs:", "", *(f"- {a}: {why}" for a, why in results.failed), ""]
    parts += [*(f"- {note}" for note in results.report.notes)]
    return "\n".join(parts).rstrip() + "\n"


def _first_table(results: Results) -> str:
    if not results.tables:
        return f"{results.status}."
    lines = [results.tables[0].text()]
    if results.rows and results.differences:
        lines += ["", "Our setting differs from the paper's:"]
        lines += [f"- {line}" for line in results.differences]
    return "\n".join(lines)


def _csv(lines: Iterable[dict[str, Any]]) -> str:
    """Return a table with the columns of all lines; no text may run as a formula."""
    rows = list(lines)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    table = csv.DictWriter(out, columns, lineterminator="\n")
    table.writeheader()
    for row in rows:
        table.writerow({name: _without_formula(value) for name, value in row.items()})
    return out.getvalue()


def _without_formula(value: object) -> object:
    is_formula = isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r")
    return f"'{value}" if is_formula else value
