"""Figures of results: accuracy over sessions with its spread, and accuracy over cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lrtflite_firmware_sim.experiment_results.runs import METRICS, Group, Value
from lrtflite_firmware_sim.reporting.plot import canvas, legend_on_top, svg_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours that colour-blind readers can tell apart (Okabe and Ito), from dark to light.
COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#5b4a9c"),
    *("#56b4e9", "#e69f00", "#4d4d4d", "#8c6d31"),
)
DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)))
GREY = "#7b8794"
# Maximum number of curves in a plot; a legend of more cannot be read.
MAX_CURVES = len(COLOURS) * 2
# Costs of the two trade-off plots.
COSTS = ("memory", "training_s")
# Name of the rival that trains again with all frames seen so far.
CUMULATIVE = "cumulative"

Curves = Mapping[str, NDArray[np.float64]]
"""Accuracies of published runs by name, (runs, sessions), shares from 0 to 1."""


def curves_svg(groups: Sequence[Group], panels: str = "", published: Curves | None = None) -> str:
    """Return accuracy over sessions as an SVG element: mean, and a band of one deviation.

    Each value of the axis `panels` gets a plot of its own. The final accuracy of the rival
    `cumulative` is a dashed line in every plot. `published` runs are dotted.
    """
    bound = [group for group in groups if is_cumulative(group)]
    drawn = [group for group in groups if not is_cumulative(group)]
    parts = _panels(drawn, panels)
    across = min(len(parts), 2)
    down = -(-len(parts) // across)
    most = max(map(len, parts.values()), default=1) + len(bound) + len(published or {})
    columns = _columns([group.label for group in groups], 9.0 / across)
    legend = 0.24 * -(-most // columns)
    with canvas(9.6, down * (3.6 if across == 1 else 3.1) + down * legend) as figure:
        grid = figure.subplots(down, across, squeeze=False, sharey=True)
        for axes in grid.flat[len(parts) :]:
            axes.set_visible(False)
        for axes, (name, members) in zip(grid.flat, parts.items()):
            _draw_panel(axes, members, bound, published or {}, skip=panels)
            if name:
                axes.set_title(name, loc="left", fontsize=11.5, fontweight="bold", pad=8)
            axes.set_xlabel("session")
            axes.legend(
                loc="upper center",
                bbox_to_anchor=(0.5, -0.17 if across == 1 else -0.2),
                ncols=columns,
                fontsize=9,
                columnspacing=1.3,
                handlelength=1.8,
            )
        for row in grid:
            row[0].set_ylabel("accuracy on the test set, %")
        return svg_of(figure, "curves")


def tradeoff_svg(groups: Sequence[Group], cost: str) -> str:
    """Return final accuracy over a cost as an SVG element, with the spread of both."""
    points = [
        (group, *found)
        for group in groups
        if not is_cumulative(group) and (found := _cost(group, cost)) is not None
    ]
    if len(points) < 2:
        return ""
    columns = _columns([group.label for group, *_ in points], 9.0)
    with canvas(9.6, 3.6 + 0.24 * -(-len(points) // columns)) as figure:
        axes = figure.subplots()
        for (group, at, spread), (colour, _) in zip(points, _styles()):
            final = group.estimate("final_accuracy")
            assert final is not None
            axes.errorbar(
                [at],
                [100 * final.mean],
                xerr=[spread] if spread else None,
                yerr=None if final.std is None else [100 * final.std],
                fmt="o",
                color=colour,
                markersize=8,
                capsize=3,
                elinewidth=1.2,
            )
            # The legend shows the dot without its bars.
            name = f"{group.label}: {100 * final.mean:.1f}"
            axes.plot([], [], "o", color=colour, label=name)
        _log_if_wide(axes, [at for _, at, _ in points])
        axes.set_xlabel(_cost_title(cost))
        axes.set_ylabel("final accuracy, %")
        legend_on_top(axes, columns)
        return svg_of(figure, f"cost-{cost.replace('_', '-')}")


def _columns(labels: Sequence[str], inches: float) -> int:
    """Return how many columns of a legend fit in a width, at most four."""
    longest = max(map(len, labels), default=1) + len(": 00.0")
    return min(4, max(1, int(inches / (0.5 + 0.075 * longest))))


def is_cumulative(group: Group) -> bool:
    return group.first.rival == CUMULATIVE


def _panels(groups: Sequence[Group], axis: str) -> dict[str, list[Group]]:
    found: dict[str, list[Group]] = {}
    for group in groups:
        value: Value = group.axes.get(axis, "") if axis else ""
        found.setdefault(str(value), []).append(group)
    return {name: members[:MAX_CURVES] for name, members in found.items()} or {"": []}


def _styles() -> list[tuple[str, object]]:
    return [(colour, dash) for dash in DASHES for colour in COLOURS]


def _draw_panel(
    axes: Axes, groups: Sequence[Group], bound: Sequence[Group], published: Curves, *, skip: str
) -> None:
    for group, (colour, dash) in zip(groups, _styles()):
        mean, spread = group.mean_curve()
        sessions = np.arange(1, len(mean) + 1)
        name = Group({k: v for k, v in group.axes.items() if k != skip}, group.runs).label
        axes.plot(
            sessions,
            100 * mean,
            color=colour,
            linestyle=dash,
            linewidth=2,
            marker="o" if len(mean) < 12 else None,
            markersize=4,
            label=f"{name}: {100 * mean[-1]:.1f}",
        )
        if len(group.runs) > 1:
            low, high = 100 * (mean - spread), 100 * (mean + spread)
            axes.fill_between(sessions, low, high, color=colour, alpha=0.16, linewidth=0)
    for group in bound:
        final = group.estimate("final_accuracy")
        assert final is not None
        axes.axhline(
            100 * final.mean,
            color=GREY,
            linestyle=(0, (6, 3)),
            linewidth=1.4,
            label=f"cumulative: {100 * final.mean:.1f}",
        )
    for (name, runs), colour in zip(published.items(), COLOURS):
        mean = runs.mean(axis=0)
        axes.plot(
            np.arange(1, len(mean) + 1),
            100 * mean,
            color=colour,
            linestyle=(0, (1, 1.5)),
            linewidth=1.6,
            label=f"paper, {name}: {100 * mean[-1]:.1f}",
        )
    axes.set_ylim(0, 101)


def _cost(group: Group, cost: str) -> tuple[float, float] | None:
    """Return a cost of a group, and its standard deviation."""
    if cost == "memory":
        data, parameters = group.estimate("data_mb"), group.estimate("parameters_mb")
        if data is None:
            return None
        return data.mean + (0 if parameters is None else parameters.mean), 0.0
    found = group.estimate(cost)
    return None if found is None else (found.mean, found.std or 0.0)


def _cost_title(cost: str) -> str:
    if cost == "memory":
        return "memory overhead, MB: stored latents and the tensors of the head"
    title, unit = METRICS[cost]
    return f"{title}, {unit} over all sessions"


def _log_if_wide(axes: Axes, values: Sequence[float]) -> None:
    positive = [value for value in values if value > 0]
    if len(positive) == len(values) and max(values) > 20 * min(values):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
