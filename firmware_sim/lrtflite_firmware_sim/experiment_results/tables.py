"""Tables of results as text, once for Markdown, LaTeX and HTML."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from lrtflite.arguments import printable
from lrtflite.workbench.intervals import Estimate
from lrtflite_firmware_sim.experiment_results.beside_paper import Beside
from lrtflite_firmware_sim.experiment_results.runs import METRICS, Group

# Metrics after the final accuracy in the table of results.
SHOWN = (
    "average_accuracy",
    "forgetting",
    "backward_transfer",
    "data_mb",
    "parameters_mb",
    "training_s",
    "extraction_s",
)
NOTHING = "-"
# Maximum number of characters of a cell that stays on one line of a page.
SHORT = 20
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
        "≥": r"$\geq$",
    }
)


@dataclass(frozen=True)
class Table:
    """Titles and rows of text; columns in `words` hold words, all others numbers."""

    name: str
    caption: str
    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: tuple[int, ...] = (0,)

    def markdown(self) -> str:
        """Return a table of Markdown, with its caption above."""
        rules = ["---" if at in self.words else "---:" for at in range(len(self.titles))]
        lines = [
            f"| {' | '.join(cell.replace('|', '/') for cell in row)} |"
            for row in (self.titles, rules, *self.rows)
        ]
        return "\n".join([f"**{self.name}.** {self.caption}", "", *lines, ""])

    def text(self) -> str:
        """Return aligned columns for a terminal."""
        lines = (self.titles, *self.rows)
        widths = [max(len(row[at]) for row in lines) for at in range(len(self.titles))]
        aligned = [
            "  ".join(
                cell.ljust(width) if at in self.words else cell.rjust(width)
                for at, (cell, width) in enumerate(zip(row, widths))
            ).rstrip()
            for row in lines
        ]
        return "\n".join(printable(line) for line in aligned)

    def latex(self) -> str:
        """Return a table of LaTeX with the lines of the package booktabs."""
        columns = "".join("l" if at in self.words else "r" for at in range(len(self.titles)))
        rows = [" & ".join(map(latex, row)) + r" \\" for row in self.rows]
        return "\n".join(
            [
                r"\begin{table}",
                rf"\caption{{{latex(f'{self.name}. {self.caption}')}}}",
                r"\centering",
                rf"\begin{{tabular}}{{{columns}}}",
                r"\toprule",
                " & ".join(map(latex, self.titles)) + r" \\",
                r"\midrule",
                *rows,
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
                "",
            ]
        )

    def html(self) -> str:
        """Return a table of HTML that scrolls by itself on a narrow page."""
        head = "".join(self._cell("th", at, title) for at, title in enumerate(self.titles))
        rows = "".join(
            f"<tr>{''.join(self._cell('td', at, cell) for at, cell in enumerate(row))}</tr>"
            for row in self.rows
        )
        return f'<div class="scroll"><table><tr>{head}</tr>{rows}</table></div>'

    def _cell(self, tag: str, at: int, text: str) -> str:
        kind = "" if at in self.words else ' class="number"'
        if at in self.words and len(text) <= SHORT:
            kind = ' class="short"'
        mark = f' data-mark="{text}"' if text in ("within", "above", "below") else ""
        return f"<{tag}{kind}{mark}>{escape(printable(text))}</{tag}>"


def latex(text: str) -> str:
    """Return a text with the characters escaped that LaTeX reads as commands."""
    return text.translate(_LATEX)


def percent(estimate: Estimate | None, *, signed: bool = False) -> str:
    """Return an estimate of a share as percent, with the standard deviation if there is one."""
    if estimate is None:
        return NOTHING
    text = f"{100 * estimate.mean:{'+' if signed else ''}.1f}"
    return text if estimate.std is None else f"{text} ± {100 * estimate.std:.1f}"


def results_table(groups: Sequence[Group], *, of: int) -> Table:
    """Return the table of all groups; `of` is the number of runs that each should have."""
    metrics = [key for key in SHOWN if any(group.values(key) for group in groups)]
    titles = [f"{METRICS[key][0]}, {METRICS[key][1]}" for key in ("final_accuracy", *metrics)]
    rows = [
        (
            group.label,
            str(len(group.runs)),
            percent(group.estimate("final_accuracy")),
            *(_metric(group, key) for key in metrics),
        )
        for group in groups
    ]
    return Table(
        "Results",
        "Mean and standard deviation over runs that differ in their seeds only.",
        ("run", "n", *titles),
        tuple(rows),
    )


def paper_table(rows: Sequence[Beside]) -> Table:
    """Return our figures beside the paper's, with a mark and the paper's table or figure."""
    lines = []
    for row in rows:
        difference = NOTHING
        if row.ours is not None and row.published.estimate is not None:
            points = 100 * (row.ours.mean - row.published.estimate.mean)
            difference = f"{points:+.1f}"
        lines.append(
            (
                row.published.name,
                row.mark or ("not run" if row.ours is None else NOTHING),
                percent(row.published.estimate),
                percent(row.ours),
                difference,
                NOTHING if row.group is None else row.group.label,
                row.published.source,
            )
        )
    return Table(
        "Beside the paper",
        "Final accuracy in percent, mean ± standard deviation. A row is within if the 95 % "
        "interval of the difference contains zero.",
        ("row of the paper", "ours is", "paper, %", "ours, %", "difference", "our run", "source"),
        tuple(lines),
        words=(0, 1, 5, 6),
    )


def cost_table(rows: Sequence[Beside]) -> Table | None:
    """Return run time and memory beside the paper's, for rows that have them."""
    lines = []
    for row in rows:
        paper = row.published
        memory = paper.data_mb is not None and paper.parameters_mb is not None
        if row.group is None or not (memory or paper.minutes is not None):
            continue
        minutes = row.group.estimate("training_s"), row.group.estimate("extraction_s")
        total = sum(each.mean for each in minutes if each is not None) / 60
        overhead = row.group.overhead()
        lines.append(
            (
                paper.name,
                NOTHING if paper.minutes is None else f"{paper.minutes:,.1f}",
                f"{total:,.1f}" if any(minutes) else NOTHING,
                f"{paper.data_mb:g} + {paper.parameters_mb:g}" if memory else NOTHING,
                NOTHING if overhead is None else str(overhead).removesuffix(" MB"),
            )
        )
    if not lines:
        return None
    return Table(
        "Run time and memory",
        "The paper's minutes are on a GTX 1080 Ti; ours are training and extraction on one core. "
        "Our parameters are all tensors of the head's state, which includes its weights.",
        ("paper", "minutes, paper", "minutes, ours", "data + parameters, MB, paper", "ours"),
        tuple(lines),
    )


def storage_table(rows: Sequence[Beside]) -> Table | None:
    """Return computation and size of a latent beside the paper's, for rows that have them."""
    shown = [row for row in rows if row.group is not None and row.published.computation is not None]
    whole = [row.group for row in shown if row.published.computation == 100]
    base = whole[0].estimate("training_s") if whole and whole[0] is not None else None
    lines = []
    for row in shown:
        assert row.group is not None
        seconds = row.group.estimate("training_s")
        share = None if base is None or seconds is None else 100 * seconds.mean / base.mean
        lines.append(
            (
                row.published.name,
                f"{row.published.computation:g}",
                NOTHING if share is None else f"{share:.1f}",
                NOTHING
                if row.published.pattern_size is None
                else f"{row.published.pattern_size:,}",
                f"{math.prod(row.group.first.bundle.latent_shape):,}",
                f"{row.group.first.replay_bytes / 1e6:,.1f}",
            )
        )
    if not lines:
        return None
    return Table(
        "Computation and storage",
        "Computation against native rehearsal in percent: the paper's in operations of a forward "
        "pass, ours in seconds of training after extraction. Pattern size is the number of values.",
        (
            "row of the paper",
            "computation, paper",
            "training time, ours",
            "pattern size, paper",
            "ours",
            "stored, MB, ours",
        ),
        tuple(lines),
    )


def comparison_table(base: Group, groups: Iterable[Group]) -> Table | None:
    """Return the paired differences of final accuracy from a group; None without pairs."""
    lines = []
    for group in groups:
        found = None if group is base else group.against(base)
        if found is not None:
            lines.append(
                (
                    group.label,
                    str(found.n),
                    f"{100 * found.mean:+.1f} ± {100 * found.half:.1f}",
                    f"{found.p:.3f}",
                    "yes" if found.is_clear else "no",
                )
            )
    if not lines:
        return None
    return Table(
        f"Compared with {base.label}",
        "Differences of final accuracy in points, run by run with the same seed: mean, 95 % "
        "interval (Student's t), and the p of the exact sign-flip test, which cannot be smaller "
        "than 2 / 2^n for n runs.",
        ("run", "n", "difference", "p", "interval excludes 0"),
        tuple(lines),
    )


def _metric(group: Group, key: str) -> str:
    estimate = group.estimate(key)
    if estimate is None:
        return NOTHING
    unit = METRICS[key][1]
    if unit == "%":
        return percent(estimate, signed="transfer" in key)
    return f"{estimate.mean:.3g}" if estimate.mean < 100 else f"{estimate.mean:,.0f}"
