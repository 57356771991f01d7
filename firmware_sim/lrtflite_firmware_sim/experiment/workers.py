"""Workers that run cells: threads that each wait for a child process, or a cluster."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from lrtflite.system.capacity import machine_mb, usable_cores
from lrtflite_firmware_sim.experiment.cells import Cell
from lrtflite_firmware_sim.experiment.jobs import CellJob, run_cell


@dataclass(frozen=True)
class Outcome:
    """The end of a job: a record, or an error."""

    job: CellJob
    record: dict[str, Any] | None = None
    error: BaseException | None = None


class Workers(Protocol):
    """Runs cells. A context manager; leaving it drops all unfinished work."""

    @property
    def count(self) -> int:
        """The number of cells that run at the same time."""
        ...

    def check(self, cells: Sequence[Cell]) -> None:
        """Raise LrtfliteError if these cells cannot run here; called before any work starts."""
        ...

    def submit(self, job: CellJob) -> None: ...

    def next(self) -> Outcome:
        """Wait for the next outcome of a job that was submitted."""
        ...

    def __enter__(self) -> Workers: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class ThreadWorkers:
    """Workers on this machine, without a scheduler.

    The threads are daemons: when this process ends, so do the children that they wait for.
    """

    def __init__(self, count: int = 1, *, run: Callable[..., dict[str, Any]] = run_cell) -> None:
        self.count = count
        self._run = run
        self._jobs: queue.SimpleQueue[CellJob | None] = queue.SimpleQueue()
        self._outcomes: queue.Queue[Outcome] = queue.Queue()

    def check(self, cells: Sequence[Cell]) -> None:
        """Do nothing: this machine has everything."""

    def submit(self, job: CellJob) -> None:
        self._jobs.put(job)

    def next(self) -> Outcome:
        while True:
            # With a timeout, because a wait without one ignores Ctrl-C on some systems.
            try:
                return self._outcomes.get(timeout=1.0)
            except queue.Empty:
                continue

    def __enter__(self) -> ThreadWorkers:
        for _ in range(self.count):
            threading.Thread(target=self._work, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for _ in range(self.count):
            self._jobs.put(None)

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            try:
                record = self._run(job, megabytes=machine_mb() / self.count)
            except BaseException as error:
                self._outcomes.put(Outcome(job, error=error))
            else:
                self._outcomes.put(Outcome(job, record=record))


def choose_workers(
    out: Path,
    *,
    count: int | None = None,
    scheduler: str | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> Workers:
    """Return workers for the experiment in `out`: `count` on this machine, or a cluster's."""
    if scheduler is None:
        return ThreadWorkers(count or usable_cores())
    from lrtflite_firmware_sim.experiment.cluster import ClusterWorkers

    return ClusterWorkers(scheduler, out, workers=count or usable_cores(), note=note)
