"""The `[report]` table of a plan: what the paper published, and how the results are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any

from lrtflite.arguments import shown
from lrtflite.errors import InputError
from lrtflite.workbench.intervals import Estimate
from lrtflite_firmware_sim.experiment.names import PlanOption
from lrtflite_firmware_sim.experiment.plan_file import REPORT
from lrtflite_firmware_sim.experiment_results.runs import Group, Value

# Annotation of a field that is no single value -> its type in a plan, and its name in an error.
_PARTS: Mapping[str, tuple[type, str]] = {
    "Sequence": (list, "a list"),
    "Mapping": (dict, "a table"),
    "Setting": (dict, "a table"),
}


@dataclass(frozen=True)
class Published:
    """One row of a table or curve of the paper.

    `match` has the options of the runs to compare with it. `accuracy` and `std` are in percent,
    over `runs` runs. `benchmark` is the protocol, such as NICv2-391. `curve` names the series in
    the authors' file of curves. The rest are the other columns of the paper's tables.
    """

    name: str
    source: str
    match: Mapping[str, Value] = field(default_factory=dict)
    benchmark: str = ""
    accuracy: float | None = None
    std: float | None = None
    runs: int = 1
    curve: str = ""
    minutes: float | None = None
    data_mb: float | None = None
    parameters_mb: float | None = None
    computation: float | None = None
    pattern_size: int | None = None
    note: str = ""

    @property
    def estimate(self) -> Estimate | None:
        """Return the published accuracy as a share from 0 to 1."""
        if self.accuracy is None:
            return None
        std = None if self.std is None else self.std / 100
        return Estimate.from_spread(self.accuracy / 100, std, self.runs)

    def fits(self, group: Group, default_benchmark: str) -> bool:
        """Return whether a group of runs is compared with this row."""
        benchmark = benchmark_of(group) or default_benchmark
        if self.benchmark and benchmark and self.benchmark != benchmark:
            return False
        # A rival learns from the bundle of another strategy.
        if group.first.rival is not None and "rival" not in self.match:
            return False
        return bool(self.match) and all(
            option(group, name) == value for name, value in self.match.items()
        )


@dataclass(frozen=True)
class Setting:
    """The setting in which the paper measured, for the list of differences from ours."""

    dataset: str = ""
    protocol: str = ""
    backbone: str = ""
    preset: str = ""
    runs: int | None = None
    note: str = ""


@dataclass(frozen=True)
class PlanReport:
    """The table: `panels` is an axis that gives each of its values a plot of its own.

    `reference` has options of the group that others are compared with, by default the first one.
    `metrics` are columns of the table of results, in addition to the final accuracy.
    """

    published: Sequence[Published] = ()
    paper: Setting = field(default_factory=Setting)
    panels: str = ""
    reference: Mapping[str, Value] = field(default_factory=dict)
    notes: Sequence[str] = ()

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> PlanReport:
        """Read the table; raise InputError for an unknown key."""
        _check_keys(table, cls, "[report]")
        rows = table.get("published", [])
        for row in rows:
            _check_keys(row, Published, "[[report.published]]")
            for key in ("name", "source"):
                if key not in row:
                    raise InputError(
                        f"Expected {key} in [[report.published]], got {shown(row)}", f"add {key}"
                    )
        for note in table.get("notes", ()):
            _check_value("each note", note, "str")
        setting = table.get("paper", {})
        _check_keys(setting, Setting, "[report.paper]")
        return cls(
            published=tuple(Published(**_fields(row)) for row in rows),
            paper=Setting(**_fields(setting)),
            panels=table.get("panels", ""),
            reference=table.get("reference", {}),
            notes=tuple(table.get("notes", ())),
        )

    def beside(self, group: Group) -> Published | None:
        """Return the paper's row for a group, if it has one."""
        fitting = [row for row in self.published if row.fits(group, self.paper.protocol)]
        return max(fitting, key=lambda row: len(row.match), default=None)

    def base(self, groups: Sequence[Group]) -> Group | None:
        """Return the group that others are compared with."""
        for group in groups:
            if all(option(group, name) == value for name, value in self.reference.items()):
                return group
        return None


def benchmark_of(group: Group) -> str:
    """Return the published protocol that a group learned, such as NICv2-391, or ""."""
    protocol, _, run = group.first.protocol.partition(" run ")
    # A comma precedes chosen classes or other labels, which make it another task.
    return protocol if protocol.startswith("NICv2-") and "," not in run else ""


def option(group: Group, name: str) -> Value | None:
    """Return an option of a group; some are taken from the result if the plan does not set them."""
    found = group.runs[0].options.get(name)
    if found is not None:
        return found
    first = group.first
    by_result: dict[str, Value | None] = {
        "strategy": first.bundle.strategy if first.rival is None else None,
        "replay-layer": first.bundle.replay_layer,
        "replay-size": first.replay_size,
        "rival": first.rival,
    }
    return by_result.get(name)


def _fields(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key.replace("-", "_"): value for key, value in table.items()}


def _check_keys(table: object, kind: type, where: str) -> None:
    if not isinstance(table, dict):
        raise InputError(f"Expected {where} as a table, got {shown(table)}", "write key = value")
    known = [each.name.replace("_", "-") for each in fields(kind)]
    for key in table:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
            raise InputError(f"Expected a key of {where}, got {shown(key)}", hint)
    for name, each in zip(known, fields(kind)):
        if name in table:
            _check_value(name, table[name], str(each.type))


def _check_value(name: str, value: object, kind: str) -> None:
    """Raise InputError unless a value is of a kind, as an annotation names it."""
    kind = kind.partition(" ")[0].partition("[")[0]
    if kind not in _PARTS:
        PlanOption(name, REPORT, name, kind).check(value)
    elif not isinstance(value, _PARTS[kind][0]):
        raise InputError(
            f"Expected {name} as {_PARTS[kind][1]}, got {shown(value)}", "correct it in the plan"
        )
