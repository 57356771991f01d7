"""Runs of an experiment as values: one line per cell, and groups of cells that differ in seeds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Union

import numpy as np
from numpy.typing import NDArray

from lrtflite.workbench.intervals import Difference, Estimate, paired
from lrtflite.workbench.transfer import (
    MemoryOverhead,
    average_accuracy,
    backward_transfer,
    forward_transfer,
)
from lrtflite_firmware_sim.reporting.results import Simulation

Value = Union[bool, int, float, str]
# Axes whose values only repeat a run.
REPEATS = ("seed", "split-seed")
# Each published run of CORe50 is another order of the same batches.
_RUN = re.compile(r"([?&])run=\d+(&|$)")
# Phases in which the device learns, apart from extraction.
_NOT_TRAINING = ("extract", "infer")

# Measured values of a run: key -> (title, unit).
METRICS: Mapping[str, tuple[str, str]] = {
    "final_accuracy": ("final accuracy", "%"),
    "average_accuracy": ("average accuracy", "%"),
    "forgetting": ("forgetting", "%"),
    "backward_transfer": ("backward transfer", "%"),
    "forward_transfer": ("forward transfer", "%"),
    "data_mb": ("replay memory", "MB"),
    "parameters_mb": ("parameters", "MB"),
    "training_s": ("training", "s"),
    "extraction_s": ("extraction", "s"),
    "session_ms": ("session", "ms"),
    "peak_ram_mb": ("peak RAM", "MB"),
}


class CellLike(Protocol):
    """A cell of an experiment, as `read_cells` returns it."""

    @property
    def digest(self) -> str: ...

    @property
    def options(self) -> Mapping[str, Value]: ...

    @property
    def axes(self) -> Mapping[str, Value]: ...

    @property
    def record(self) -> Mapping[str, Any] | None: ...


@dataclass(frozen=True)
class Run:
    """A finished cell: its options, its place among the seeds, and what was measured.

    `values` has the keys of METRICS; a value that an older result lacks is missing. `curve` is the
    accuracy on the whole test set after each session.
    """

    digest: str
    options: Mapping[str, Value]
    axes: Mapping[str, Value]
    repeat: tuple[tuple[str, Value], ...]
    values: Mapping[str, float]
    curve: tuple[float, ...]
    simulation: Simulation

    @classmethod
    def of(cls, cell: CellLike) -> Run:
        """Return the values of a cell that is done."""
        record = cell.record
        assert record is not None
        simulation = Simulation.from_json(json.dumps(record["result"]))
        return cls(
            digest=cell.digest,
            options=dict(cell.options),
            axes=varying(cell.axes),
            repeat=repeat_of(cell.axes),
            values=_measured(simulation, record),
            curve=tuple(session.accuracy for session in simulation.per_session),
            simulation=simulation,
        )

    def line(self) -> dict[str, Any]:
        """Return a flat line for a table: options, measured values, and what they depend on."""
        found = self.simulation
        return {
            "digest": self.digest,
            **{f"option:{name}": value for name, value in self.options.items()},
            "dataset": found.dataset,
            "protocol": found.protocol,
            "backbone": found.bundle.backbone,
            "replay_layer": found.bundle.replay_layer,
            "strategy": found.strategy,
            "seed": found.seed,
            "sessions": found.sessions,
            "test_frames": found.test_frames,
            **self.values,
        }


@dataclass(frozen=True)
class Group:
    """Runs that differ only in their seeds; `axes` are options in which groups differ."""

    axes: Mapping[str, Value]
    runs: tuple[Run, ...]

    @property
    def label(self) -> str:
        """Return the axes with their values as one name; strategies and layers need no axis."""
        parts = [] if self.first.rival is None else [self.first.rival]
        for name, value in self.axes.items():
            # A rival learns instead of the strategy of its bundle.
            if name != "rival" and not (name == "strategy" and self.first.rival is not None):
                bare = isinstance(value, str) and name in ("strategy", "replay-layer")
                parts.append(str(value) if bare else f"{name} {_shown(value)}")
        return ", ".join(parts) or self.first.strategy

    @property
    def first(self) -> Simulation:
        return self.runs[0].simulation

    def values(self, metric: str) -> list[float]:
        return [run.values[metric] for run in self.runs if metric in run.values]

    def estimate(self, metric: str) -> Estimate | None:
        """Return mean, spread and interval over the runs; None if no run measured it."""
        values = self.values(metric)
        return Estimate.of(values) if values else None

    def overhead(self) -> MemoryOverhead | None:
        data, parameters = self.estimate("data_mb"), self.estimate("parameters_mb")
        if data is None or parameters is None:
            return None
        return MemoryOverhead(round(1e6 * data.mean), round(1e6 * parameters.mean))

    def against(self, base: Group, metric: str = "final_accuracy") -> Difference | None:
        """Compare with another group, seed by seed; None with fewer than two common seeds."""
        mine = {run.repeat: run.values.get(metric) for run in self.runs}
        theirs = {run.repeat: run.values.get(metric) for run in base.runs}
        pairs = [
            (value, theirs[repeat])
            for repeat, value in mine.items()
            if value is not None and theirs.get(repeat) is not None
        ]
        if len(pairs) < 2:
            return None
        return paired([a for a, _ in pairs], [b for _, b in pairs if b is not None])

    def mean_curve(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return mean and standard deviation of the accuracy after each session.

        Longer runs are cut to the length of the shortest one.
        """
        length = min(len(run.curve) for run in self.runs)
        table = np.array([run.curve[:length] for run in self.runs])
        spread = table.std(axis=0, ddof=1) if len(table) > 1 else np.zeros(length)
        return table.mean(axis=0), spread


def finished(cells: Iterable[CellLike]) -> list[Run]:
    """Return the runs of all cells that are done, in their order."""
    return [
        Run.of(cell)
        for cell in cells
        if cell.record is not None and cell.record["status"] == "done"
    ]


def grouped(runs: Sequence[Run]) -> list[Group]:
    """Return the groups of runs that differ only in seeds, in the order of their first run."""
    found: dict[tuple[tuple[str, Value], ...], list[Run]] = {}
    for run in runs:
        found.setdefault(tuple(sorted(varying(run.options).items())), []).append(run)
    options = [dict(key) for key in found]
    # The plan's axes come first, in its order.
    names = dict.fromkeys(name for run in runs for name in (*run.axes, *sorted(run.options)))
    apart = [name for name in names if len({each.get(name) for each in options}) > 1]
    return [
        Group({name: own[name] for name in apart if name in own}, tuple(members))
        for own, members in zip(options, found.values())
    ]


def varying(options: Mapping[str, Value]) -> dict[str, Value]:
    """Return the options that are not seeds; the run of a published data set counts as a seed."""
    return {
        name: _without_run(value) if name == "dataset" else value
        for name, value in options.items()
        if name not in REPEATS
    }


def repeat_of(axes: Mapping[str, Value]) -> tuple[tuple[str, Value], ...]:
    """Return the seeds among the axes, and the run of a published data set."""
    seeds: dict[str, Value] = {name: axes[name] for name in REPEATS if name in axes}
    data = axes.get("dataset")
    if isinstance(data, str) and data != _without_run(data):
        seeds["dataset"] = data
    return tuple(seeds.items())


def _without_run(spec: Value) -> Value:
    if not isinstance(spec, str):
        return spec
    bare = _RUN.sub(lambda found: found[1] if found[2] == "&" else "", spec)
    return bare


def _measured(found: Simulation, record: Mapping[str, Any]) -> dict[str, float]:
    values = {
        "final_accuracy": found.final_accuracy,
        "forgetting": found.forgetting,
        "data_mb": found.replay_bytes / 1e6,
        "session_ms": found.session_ms_p50,
        "peak_ram_mb": found.peak_ram_mb,
    }
    if found.parameter_bytes is not None:
        values["parameters_mb"] = found.parameter_bytes / 1e6
    before = 0 if found.start is None else 1
    learned = [
        None if each.first_session is None else max(each.first_session - 1 + before, 0)
        for each in found.per_class
    ]
    if found.class_accuracy and any(first is not None for first in learned):
        # A class without test frames has no accuracy.
        history = np.array(found.class_accuracy, np.float64)
        values["average_accuracy"] = average_accuracy(history, learned)
        values["backward_transfer"] = backward_transfer(history, learned)
        values["forward_transfer"] = forward_transfer(history, learned)
    if found.phase_ms:
        values["training_s"] = (
            sum(ms for phase, ms in found.phase_ms.items() if phase not in _NOT_TRAINING) / 1e3
        )
        frames = sum(session.frames for session in found.per_session)
        per_frame = record.get("extraction", {}).get("ms_per_frame")
        if per_frame is not None:
            values["extraction_s"] = frames * per_frame / 1e3
    return values


def _shown(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
