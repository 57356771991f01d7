"""Run an experiment: check everything, convert bundles, run the cells that have not run yet."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lrtflite.bundle.bundle import Bundle, demo_bundle
from lrtflite.counted import counted
from lrtflite.data import FrameSource
from lrtflite.errors import LrtfliteError
from lrtflite_firmware_sim.experiment.bundles import BundleStore
from lrtflite_firmware_sim.experiment.cells import Cell, cells_of
from lrtflite_firmware_sim.experiment.digests import versions_here
from lrtflite_firmware_sim.experiment.extraction import can_share, is_extracted, latents_digest
from lrtflite_firmware_sim.experiment.folder import ExperimentFolder
from lrtflite_firmware_sim.experiment.jobs import CellJob, SharedLatents, failed_record, problem
from lrtflite_firmware_sim.experiment.plan_file import PlanFile
from lrtflite_firmware_sim.experiment.watching import ExperimentWatcher, in_words
from lrtflite_firmware_sim.experiment.workers import ThreadWorkers, Workers
from lrtflite_firmware_sim.plan import open_dataset

# Number of tries before a cell counts as failed.
TRIES = 2
# Jobs given out for each worker; the second one waits, so that the worker is never idle.
AHEAD = 2


@dataclass(frozen=True)
class CheckedPlan:
    """A plan that can run: its cells, each with its record from earlier calls, and the folder."""

    plan: PlanFile
    folder: ExperimentFolder
    cells: tuple[Cell, ...]
    versions: dict[str, str]

    @property
    def waiting(self) -> list[Cell]:
        """Return the cells that have not run, or have failed."""
        return [cell for cell in self.cells if not cell.is_done]

    @property
    def kinds(self) -> dict[str, list[Cell]]:
        """Return the waiting cells that take about the same time, by kind."""
        kinds: defaultdict[str, list[Cell]] = defaultdict(list)
        for cell in self.waiting:
            kinds[cell.kind].append(cell)
        return dict(kinds)


@dataclass(frozen=True)
class ExperimentEnd:
    """The end of a call: the numbers of cells that are done, and the records that failed."""

    done: int
    total: int
    failed: tuple[str, ...]

    def __str__(self) -> str:
        text = f"{self.done} of {counted(self.total, 'cell')} done"
        return f"{text}, {len(self.failed)} failed" if self.failed else text


@dataclass(frozen=True)
class Estimate:
    """Seconds of one cell of each kind, times their number; `workers` share the work."""

    kinds: tuple[tuple[str, float, int], ...]
    workers: int

    @property
    def seconds(self) -> float:
        return sum(seconds * count for _, seconds, count in self.kinds) / self.workers


def check_experiment(plan: PlanFile, out: str | Path, *, yes: bool = False) -> CheckedPlan:
    """Check a plan and the folder for its results; change nothing.

    Raise LrtfliteError for anything that cannot work. `yes` allows more than 10,000 cells, and a
    folder with results of other versions.
    """
    cells = cells_of(plan, yes=yes)
    converts = any(cell.parsed.request is not None for cell in cells)
    versions = versions_here(converts=converts)
    folder = ExperimentFolder(out)
    folder.check(versions, yes=yes)
    return CheckedPlan(plan, folder, tuple(folder.with_records(cells)), versions)


def run_experiment(
    checked: CheckedPlan,
    *,
    workers: Workers | None = None,
    watcher: ExperimentWatcher | None = None,
) -> ExperimentEnd:
    """Run every cell that is not done. However this call ends, finished cells stay done."""
    with checked.folder.in_use():
        checked.folder.write_plan(checked.plan, checked.cells, checked.versions)
        _Run(checked, workers or ThreadWorkers(), watcher or ExperimentWatcher()).cells(
            checked.waiting
        )
    cells = checked.folder.with_records(checked.cells)
    failed = [str(c) or c.digest for c in cells if c.record is not None and not c.is_done]
    return ExperimentEnd(sum(cell.is_done for cell in cells), len(cells), tuple(failed))


def estimate_experiment(
    checked: CheckedPlan,
    *,
    workers: Workers | None = None,
    watcher: ExperimentWatcher | None = None,
) -> Estimate:
    """Run one cell of each kind, and return an estimate for the cells that remain."""
    kinds = checked.kinds
    workers = workers or ThreadWorkers()
    with checked.folder.in_use():
        checked.folder.write_plan(checked.plan, checked.cells, checked.versions)
        first = [cells[0] for cells in kinds.values()]
        _Run(checked, workers, watcher or ExperimentWatcher()).cells(first, of=checked.waiting)
    rows = []
    for cells in kinds.values():
        record = checked.folder.record(cells[0].digest) or {}
        if record.get("status") != "done":
            raise LrtfliteError(
                f"Cannot estimate cells like {cells[0]}: {record.get('error', 'it did not run')}",
                "correct the plan",
            )
        rows.append((str(cells[0]), float(record["seconds"]), len(cells) - 1))
    return Estimate(tuple(rows), workers.count)


class _Run:
    """Runs the cells of one call."""

    def __init__(self, checked: CheckedPlan, workers: Workers, watcher: ExperimentWatcher) -> None:
        self._checked, self._folder = checked, checked.folder
        self._workers, self._watcher = workers, watcher
        self._bundles = BundleStore(self._folder.bundles)
        self._seconds: defaultdict[str, list[float]] = defaultdict(list)
        self._sources: dict[object, FrameSource] = {}
        self._identities: dict[object, str | None] = {}
        self._total = self._finished = 0

    def cells(self, cells: Sequence[Cell], *, of: Sequence[Cell] | None = None) -> None:
        """Run these cells; latents are shared if several cells of `of` use them."""
        if not cells:
            return
        self._total = len(cells)
        with ExitStack() as stack:
            workers = stack.enter_context(self._workers)
            workers.check(cells)
            stack.enter_context(self._watcher.running(0, self._total))
            errors = self._bundles.convert((c.parsed.request for c in cells), self._watcher)
            for cell in cells:
                if cell.parsed.request in errors:
                    job = CellJob(cell.digest, cell.options, cell.axes)
                    self._finish(failed_record(job, errors[cell.parsed.request]), None)
            made = [cell for cell in cells if cell.parsed.request not in errors]
            users = [cell for cell in of or cells if cell.parsed.request not in errors]
            self._hand_out(made, deque(self._jobs(made, users)), workers)

    def _hand_out(self, cells: Sequence[Cell], jobs: deque[CellJob], workers: Workers) -> None:
        """Run the jobs of these cells; try each a second time if it fails."""
        by_digest = {cell.digest: cell for cell in cells}
        given = 0
        while jobs or given:
            while jobs and given < AHEAD * workers.count:
                job = jobs.popleft()
                self._watcher.started(by_digest[job.digest])
                workers.submit(job)
                given += 1
            outcome = workers.next()
            given -= 1
            cell, error = by_digest[outcome.job.digest], outcome.error
            if error is not None and outcome.job.attempts < TRIES:
                self._watcher.again(cell, problem(error))
                jobs.append(replace(outcome.job, attempts=outcome.job.attempts + 1))
                continue
            record = outcome.record
            if error is not None or record is None:
                record = failed_record(outcome.job, error or RuntimeError("no answer"))
            else:
                self._seconds[cell.kind].append(record["seconds"])
            self._finish(record, self._seconds_left(cells, jobs, given))

    def _finish(self, record: dict[str, Any], left: float | None) -> None:
        self._folder.write_record(record)
        self._finished += 1
        self._watcher.finished(record, self._finished, self._total, left)

    def _jobs(self, cells: Sequence[Cell], of: Sequence[Cell]) -> list[CellJob]:
        """Return the jobs; those that extract shared latents come first."""
        stored = {cell.digest: self._stored(cell) for cell in of}
        users: defaultdict[str, int] = defaultdict(int)
        for each in stored.values():
            if each is not None:
                users[each.digest] += 1
        first: list[CellJob] = []
        others: list[CellJob] = []
        seen: set[str] = set()
        for cell in cells:
            wanted = stored[cell.digest]
            if wanted is not None and not is_extracted(wanted.path) and users[wanted.digest] < 2:
                wanted = None
            bundle = self._bundles.path(cell.parsed)
            job = CellJob(cell.digest, cell.options, cell.axes, bundle, wanted)
            leads = wanted is not None and wanted.digest not in seen
            (first if leads else others).append(job)
            if wanted is not None:
                seen.add(wanted.digest)
        return first + others

    def _stored(self, cell: Cell) -> SharedLatents | None:
        """Return the latents that a cell can share; None if its own process has to extract."""
        read = cell.parsed
        options = read.simulate
        path = self._bundles.path(read)
        runs = options.learner.runtime, options.learner.threads
        key = (path, options.spec, options.data_seed, options.skip_unreadable, runs)
        if key not in self._identities:
            with ExitStack() as stack:
                folder = Path(path) if path else stack.enter_context(demo_bundle())
                manifest = Bundle.open(folder).manifest
            place = (manifest.input_size, *key[1:4])
            if place not in self._sources:
                self._sources[place] = open_dataset(options, size=manifest.input_size)
            shares = can_share(manifest, self._sources[place], self._folder.latents)
            self._identities[key] = latents_digest(manifest, options) if shares else None
        digest = self._identities[key]
        return (
            None if digest is None else SharedLatents(digest, str(self._folder.latents.resolve()))
        )

    def _seconds_left(
        self, cells: Sequence[Cell], waiting: Iterable[CellJob], given: int
    ) -> float | None:
        """Return the estimated seconds until the end; None before the first cell is done."""
        every = [seconds for times in self._seconds.values() for seconds in times]
        if not every:
            return None
        mean = sum(every) / len(every)
        kinds = {cell.digest: cell.kind for cell in cells}
        total = given * mean / 2  # cells that run now are half done on average
        for job in waiting:
            times = self._seconds.get(kinds[job.digest], [mean])
            total += sum(times) / len(times)
        return total / max(1, self._workers.count)


def describe(cells: Iterable[Cell]) -> list[str]:
    """Return a line for each cell: what it is, and whether it has run."""
    lines = []
    for cell in cells:
        status = "to run" if cell.record is None else cell.record["status"]
        lines.append(f"{cell.digest}  {status:<7} {cell}".rstrip())
    return lines


def estimate_lines(estimate: Estimate) -> list[str]:
    """Return the estimate in words, a line for each kind of cell."""
    lines = [
        f"{in_words(seconds)} for each of {count} more like {name}"
        for name, seconds, count in estimate.kinds
    ]
    workers = counted(estimate.workers, "worker")
    return [*lines, f"{in_words(estimate.seconds)} in all with {workers}"]
