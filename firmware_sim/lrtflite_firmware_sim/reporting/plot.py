"""Plots of a simulation, drawn by matplotlib (the extra `report`)."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lrtflite.counted import counted
from lrtflite.errors import MissingExtra
from lrtflite.system.extras import missing
from lrtflite_firmware_sim.reporting.results import Simulation
from lrtflite_firmware_sim.reporting.summary import first_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import Formatter

INK, FAINT, GRID = "#1f2933", "#7b8794", "#e4e7eb"
BLUE, ORANGE, GREEN = "#2563eb", "#e07a1f", "#15803d"
# Maximum number of characters of a class's name below its bar.
MAX_SHOWN = 28
_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 10.5,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "legend.frameon": False,
    "svg.fonttype": "path",
    # A $ in a name does not start a formula.
    "text.parse_math": False,
    "text.usetex": False,
    # A fixed salt, so that the same simulation gives the same file.
    "svg.hashsalt": "lrtflite",
}


def check_plotting() -> None:
    """Raise MissingExtra unless matplotlib is installed."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise missing("matplotlib") from error


def learning_curve(result: Simulation, path: str | Path, other: Simulation | None = None) -> None:
    """Draw accuracy over sessions to a file (PNG, SVG or PDF, by its ending).

    `other` is a run of another strategy on the same stream, drawn dashed for comparison.
    """
    with canvas(9.0, 4.4) as figure:
        axes = figure.subplots()
        draw_learning_curve(axes, result)
        if other is not None:
            _draw_other(axes, other)
            legend_on_top(axes, 3)
        title = f"{result.dataset}: {counted(result.sessions, 'session')}"
        title += ", one small batch of frames each"
        title += "" if result.rival is None else f", {result.rival}"
        figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
        figure.savefig(path, dpi=160)


def learning_curve_svg(result: Simulation) -> str:
    """Return the accuracy over sessions as an SVG element."""
    with canvas(9.6, 4.3) as figure:
        draw_learning_curve(figure.subplots(), result)
        return svg_of(figure, "curve")


def classes_svg(result: Simulation) -> str:
    """Return one bar per class as an SVG element, in the order in which they were learned."""
    taught = sorted(
        (found for found in result.per_class if found.first_session is not None),
        key=lambda found: (found.first_session or 0, found.name),
    )
    with canvas(9.6, 3.4) as figure:
        axes = figure.subplots()
        spots = range(len(taught))
        best = [100 * found.best_accuracy for found in taught]
        final = [100 * found.final_accuracy for found in taught]
        axes.bar(spots, best, color="#dbe4f0", label="best ever")
        axes.bar(spots, final, color=BLUE, width=0.55, label="at the end")
        axes.set_xticks(list(spots), [_short(c.name) for c in taught], rotation=90, fontsize=8.5)
        axes.tick_params(axis="x", length=0)
        axes.grid(axis="x", visible=False)
        axes.set_xlim(-0.8, len(taught) - 0.2)
        axes.set_ylim(0, 104)
        axes.set_ylabel("accuracy of the class, %")
        legend_on_top(axes, 2)
        return svg_of(figure, "classes")


def latency_svg(result: Simulation, phases: Sequence[str]) -> str:
    """Return the median and 95th percentile of each phase as an SVG element."""
    shown = [phase for phase in phases if phase in result.latency_ms][::-1]
    with canvas(9.6, 0.42 * len(shown) + 0.9) as figure:
        axes = figure.subplots()
        for row, phase in enumerate(shown):
            spread = result.latency_ms[phase]
            axes.plot([spread.p50, spread.p95], [row, row], color="#b6c9f3", linewidth=6)
            axes.plot([spread.p50], [row], "o", color=BLUE, markersize=8)
            axes.annotate(
                f"{spread.p50:.3g} ms",
                (max(spread.p95, spread.p50), row),
                xytext=(9, 0),
                textcoords="offset points",
                va="center",
                fontsize=9.5,
            )
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        axes.set_xlim(low, high * (high / low) ** 0.12)
        axes.set_yticks(range(len(shown)), shown)
        axes.set_ylim(-0.6, len(shown) - 0.4)
        axes.tick_params(axis="y", length=0, labelcolor=INK)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("milliseconds: dot = median, bar up to the 95th percentile")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter(_minor_ticks())
        return svg_of(figure, "latency")


def draw_learning_curve(axes: Axes, result: Simulation) -> None:
    """Draw three curves over the sessions, and a tick where a new class arrives."""
    from matplotlib.ticker import MaxNLocator

    sessions = [point.session for point in result.per_session]
    many = len(sessions) > 40
    known, all_classes = [], []
    if result.start is not None:
        # Session 0 stands for the bundle as it shipped.
        sessions = [0, *sessions]
        known, all_classes = [result.start.accuracy_known], [result.start.accuracy]
    for name, color, values in (
        ("classes seen so far", GREEN, [*known, *(p.accuracy_seen for p in result.per_session)]),
        (first_text(result), ORANGE, [*known, *(p.accuracy_first for p in result.per_session)]),
        ("whole test set", BLUE, [*all_classes, *(p.accuracy for p in result.per_session)]),
    ):
        whole = color == BLUE
        axes.plot(
            sessions,
            [100 * value for value in values],
            color=color,
            linewidth=2.6 if whole else 1.5,
            marker=None if many else "o",
            markersize=5 if whole else 3.5,
            label=f"{name}: {values[-1]:.1%}",
        )
    later = result.per_session[1:] if result.start is None else result.per_session
    arrivals = [point.session for point in later if point.new_classes]
    if arrivals:
        axes.plot(
            arrivals,
            [1.5] * len(arrivals),
            "|",
            color=INK,
            markersize=9,
            markeredgewidth=1.3,
            label="a new class arrives",
        )
    axes.set_ylim(0, 102)
    axes.set_xlim(min(sessions) - 0.5, max(sessions) + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("learning session")
    axes.set_ylabel("accuracy on the test set, %")
    legend_on_top(axes, 4)


def _minor_ticks() -> Formatter:
    """Return matplotlib's choice of minor ticks on a log axis, as plain numbers."""
    from matplotlib.ticker import LogFormatter

    class Plain(LogFormatter):
        def __call__(self, x: float, pos: int | None = None) -> str:
            return f"{x:g}" if super().__call__(x, pos) else ""

    return Plain()


def _short(name: str) -> str:
    return name if len(name) <= MAX_SHOWN else f"{name[: MAX_SHOWN - 3].rstrip()}..."


def _draw_other(axes: Axes, other: Simulation) -> None:
    for name, color, values in (
        ("seen so far", GREEN, [point.accuracy_seen for point in other.per_session]),
        ("whole test set", BLUE, [point.accuracy for point in other.per_session]),
    ):
        axes.plot(
            [point.session for point in other.per_session],
            [100 * value for value in values],
            color=color,
            linewidth=1.5,
            linestyle=(0, (4, 2)),
            label=f"{other.strategy}, {name}: {values[-1]:.1%}",
        )


def legend_on_top(axes: Axes, columns: int) -> None:
    """Put the legend above the axes, where it covers no curve."""
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(-0.01, 1.0),
        ncols=columns,
        borderaxespad=0.2,
        columnspacing=1.3,
        handlelength=1.5,
        fontsize=9.3,
    )


def can_plot() -> bool:
    """Return whether matplotlib is installed."""
    try:
        check_plotting()
    except MissingExtra:
        return False
    return True


@contextmanager
def canvas(width: float, height: float) -> Iterator[Figure]:
    """Yield a figure in the style of the reports."""
    check_plotting()
    import matplotlib as mpl
    from matplotlib.figure import Figure

    # Figure instead of pyplot, which opens windows and keeps figures until they are closed.
    with mpl.rc_context(_STYLE):
        yield Figure(figsize=(width, height), layout="constrained")


def svg_of(figure: Figure, name: str) -> str:
    """Return the figure as an SVG element; `name` makes its ids unique on a page."""
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    text = file.getvalue()
    ids = re.compile(r'(\bid="|href="#|url\(#)')
    return ids.sub(rf"\g<1>{name}-", text[text.index("<svg") :])
