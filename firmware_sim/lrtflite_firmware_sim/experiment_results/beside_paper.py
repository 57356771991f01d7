"""Our figures beside the paper's: within, above or below, and what differs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from lrtflite.workbench.intervals import Estimate, welch
from lrtflite_firmware_sim.experiment_results.plan_report import (
    PlanReport,
    Published,
    benchmark_of,
    option,
)
from lrtflite_firmware_sim.experiment_results.runs import Group

Mark = Literal["within", "above", "below"]
# Largest difference that counts as none where neither side has a spread: one point.
ONE_POINT = 0.01
# Settings of a data set that leave out a part of it.
PARTS = ("classes", "labels", "stride")
# Word in the name of weights that were trained on ImageNet.
IMAGENET = "imagenet"


@dataclass(frozen=True)
class Beside:
    """A row of the paper and the runs to compare with it, if any are done."""

    published: Published
    group: Group | None

    @property
    def ours(self) -> Estimate | None:
        return None if self.group is None else self.group.estimate("final_accuracy")

    @property
    def mark(self) -> Mark | None:
        """Return whether our accuracy is within the interval of the difference, or outside."""
        if self.ours is None or self.published.estimate is None:
            return None
        return mark(self.ours, self.published.estimate)


def mark(ours: Estimate, paper: Estimate) -> Mark:
    """Return "within" if the 95 % interval of the difference (Welch) contains zero."""
    difference = ours.mean - paper.mean
    half = welch(ours, paper)
    if abs(difference) <= (ONE_POINT if half is None else half):
        return "within"
    return "above" if difference > 0 else "below"


def beside_paper(report: PlanReport, groups: Sequence[Group]) -> list[Beside]:
    """Return each row of the paper with the group beside it; rows of other benchmarks are left out.

    A row without a group stays if its benchmark is ours, or if we have none of the paper's.
    """
    shown = {benchmark_of(group) or report.paper.protocol for group in groups}
    rows: list[Beside] = []
    for published in report.published:
        fitting = [group for group in groups if report.beside(group) is published]
        if fitting:
            rows += [Beside(published, group) for group in fitting]
        elif not published.benchmark or not shown or published.benchmark in shown:
            rows.append(Beside(published, None))
    return rows


def differences(report: PlanReport, groups: Sequence[Group]) -> Iterator[str]:
    """Yield a line for each difference between our setting and the paper's."""
    paper = report.paper
    if not groups or not paper.dataset:
        return
    data = [group.first.dataset for group in groups]
    if not all(_is_whole(spec, paper.dataset) for spec in data):
        yield f"data: {_joined(data)}, not all of {paper.dataset}"
    protocols = {group.first.protocol for group in groups if not _learns(group, paper.protocol)}
    if protocols and paper.protocol:
        yield f"protocol: {_joined(sorted(protocols))}, not {paper.protocol}"
    backbones = _joined(group.first.bundle.backbone for group in groups)
    if paper.backbone and not all(_is_imagenet(group) for group in groups):
        yield f"backbone: {backbones}, not {paper.backbone}"
    presets = {str(option(group, "preset") or "this project's defaults") for group in groups}
    if paper.preset and presets != {paper.preset}:
        yield f"rates: {_joined(sorted(presets))}, not the preset {paper.preset}"
    runs = {len(group.runs) for group in groups}
    if paper.runs is not None and runs != {paper.runs}:
        yield f"runs: {_joined(map(str, sorted(runs)))}, not {paper.runs}"
    if paper.note:
        yield paper.note


def _is_whole(spec: str, name: str) -> bool:
    """Return whether a spec names a data set without leaving out a part of it."""
    return spec.startswith(name.lower()) and not any(f"{part}=" in spec for part in PARTS)


def _learns(group: Group, protocol: str) -> bool:
    """Return whether a group learned the paper's protocol, or another published one."""
    return bool(benchmark_of(group)) or group.first.protocol.partition(",")[0] == protocol


def _is_imagenet(group: Group) -> bool:
    named = f"{group.first.bundle.backbone} {option(group, 'weights')}"
    return IMAGENET in named.casefold()


def _joined(values: Iterable[str]) -> str:
    return " and ".join(dict.fromkeys(values))
