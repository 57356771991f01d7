"""The page of an experiment: one HTML file with its figures, tables and options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrtflite.counted import counted
from lrtflite_firmware_sim.experiment_results import figures, tables
from lrtflite_firmware_sim.experiment_results.beside_paper import Beside, beside_paper, differences
from lrtflite_firmware_sim.experiment_results.plan_report import PlanReport
from lrtflite_firmware_sim.experiment_results.runs import CellLike, Group, finished, grouped
from lrtflite_firmware_sim.experiment_results.tables import Table
from lrtflite_firmware_sim.reporting.document import document, section, text

_CSS = """
[data-mark=within] { color: #15803d; font-weight: 600; }
[data-mark=above] { color: #2563eb; font-weight: 600; }
[data-mark=below] { color: #b45309; font-weight: 600; }
th { vertical-align: bottom; line-height: 1.25; }
th.number { white-space: normal; min-width: 5.2em; }
td:first-child { min-width: 10em; }
.short { white-space: nowrap; }
.figure { overflow-x: auto; }
.figure + .figure { margin-top: 26px; }
.figure svg { min-width: 560px; }
ul { margin-bottom: 2px; }
.scroll + .hint { margin: 16px 0 0; }
@media (max-width: 640px) {
  section { padding: 16px 14px; }
  th, td { padding-right: 10px; font-size: 13.5px; }
  td:first-child { min-width: 8em; }
}
"""


@dataclass(frozen=True)
class Results:
    """The results of an experiment, for its tables and its page."""

    title: str
    about: str
    report: PlanReport
    cells: Sequence[CellLike]
    groups: Sequence[Group]
    rows: Sequence[Beside]

    @classmethod
    def of(
        cls, title: str | None, about: str | None, report: PlanReport, cells: Sequence[CellLike]
    ) -> Results:
        """Return the results of the cells that are done."""
        groups = grouped(finished(cells))
        rows = beside_paper(report, groups)
        return cls(title or "Experiment", about or "", report, cells, groups, rows)

    @property
    def tables(self) -> list[Table]:
        """Return every table that has rows."""
        if not self.groups:
            return []
        base = self.report.base(self.groups)
        found: list[Table | None] = [
            tables.paper_table(self.rows) if self.rows else None,
            tables.results_table(self.groups, of=len(self.cells)),
            None if base is None else tables.comparison_table(base, self.groups),
            tables.storage_table(self.rows),
            tables.cost_table(self.rows),
        ]
        return [table for table in found if table is not None]

    @property
    def differences(self) -> list[str]:
        """Return the differences between our setting and the paper's, if the plan names one."""
        return list(differences(self.report, self.groups))

    @property
    def failed(self) -> list[tuple[str, str]]:
        """Return the options and the error of every cell that failed."""
        return [
            (", ".join(f"{k}={v}" for k, v in cell.axes.items()), str(cell.record["error"]))
            for cell in self.cells
            if cell.record is not None and cell.record["status"] != "done"
        ]

    @property
    def status(self) -> str:
        """Return how many cells are done."""
        done = sum(len(group.runs) for group in self.groups)
        said = f"{done} of {counted(len(self.cells), 'run')} done"
        return said + (f", {len(self.failed)} failed" if self.failed else "")


def html_page(results: Results, published: Mapping[str, NDArray[np.float64]] | None = None) -> str:
    """Return the complete page. Needs matplotlib."""
    body = [f"<h1>{text(results.title)}</h1>", f'<p class="lead">{text(_lead(results))}</p>']
    if results.failed:
        items = "".join(f"<li>{text(f'{which}: {why}')}</li>" for which, why in results.failed)
        body.append(section("Failed runs", "", f"<ul>{items}</ul>"))
    shown = results.tables
    if shown:
        body.append(_table(shown[0], results.differences if results.rows else []))
        body += _figures(results, published)
    body += [_table(table, []) for table in shown[1:]]
    if results.groups:
        body.append(section("Machine and versions", "", _machine(results.groups[0])))
    if results.report.notes:
        items = "".join(f"<li>{text(note)}</li>" for note in results.report.notes)
        body.append(section("Notes", "", f"<ul>{items}</ul>"))
    return document(f"lrtflite experiment: {results.title}", body, css=_CSS)


def _table(table: Table, differences: Sequence[str]) -> str:
    extra = ""
    if differences:
        items = "".join(f"<li>{text(line)}</li>" for line in differences)
        extra = f'<p class="hint">Our setting differs from the paper\'s:</p><ul>{items}</ul>'
    return section(table.name, table.caption, table.html() + extra)


def _lead(results: Results) -> str:
    return f"{results.about} {results.status}.".strip()


def _figures(results: Results, published: Mapping[str, NDArray[np.float64]] | None) -> list[str]:
    curves = figures.curves_svg(results.groups, results.report.panels, published)
    hint = (
        "Mean over runs; the band is one standard deviation. The whole test set includes classes "
    )
    hint += "that have not been taught yet. Each name has its final accuracy."
    found = [section("Accuracy over sessions", hint, _figure(curves))]
    plots = [figures.tradeoff_svg(results.groups, cost) for cost in figures.COSTS]
    if any(plots):
        hint = "Final accuracy and its standard deviation, over what it costs."
        drawn = "".join(_figure(plot) for plot in plots if plot)
        found.append(section("Trade-off", hint, drawn))
    return found


def _figure(svg: str) -> str:
    return f'<div class="figure">{svg}</div>'


def _machine(group: Group) -> str:
    first = group.first
    facts = [("machine", str(first.machine)), *first.versions.items()]
    rows = "".join(f"<tr><td>{text(k)}</td><td>{text(str(v))}</td></tr>" for k, v in facts)
    return f'<div class="scroll"><table>{rows}</table></div>'
