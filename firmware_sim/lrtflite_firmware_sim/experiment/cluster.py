"""Workers of a Dask cluster, which is running already or is started on this machine."""

from __future__ import annotations

import logging
import queue
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from lrtflite.bundle.bundle import is_packaged
from lrtflite.counted import counted
from lrtflite.data.spec import split_spec
from lrtflite.errors import DataError, InputError
from lrtflite.files.atomic import write_atomic
from lrtflite.system.extras import require
from lrtflite_firmware_sim.experiment.cell_options import CellOptions
from lrtflite_firmware_sim.experiment.cells import Cell
from lrtflite_firmware_sim.experiment.digests import PATH_SETTINGS, data_path, versions_here
from lrtflite_firmware_sim.experiment.folder import TOKEN_FILE
from lrtflite_firmware_sim.experiment.jobs import CellJob
from lrtflite_firmware_sim.experiment.parcels import MAX_BYTES, Parcel
from lrtflite_firmware_sim.experiment.remote import (
    Order,
    lacking,
    run_order,
)
from lrtflite_firmware_sim.experiment.workers import Outcome

# Address that stands for a cluster on this machine.
LOCAL = "local"
# Seconds to wait for a scheduler at the start, and for one that was lost.
CONNECT, RECONNECT = 10.0, 600.0
# Seconds after which the workers are counted again.
_FRESH = 2.0


class ClusterWorkers:
    """Workers behind a Dask scheduler.

    Jobs are not pinned to workers. A job that was lost with a worker or a scheduler is sent again.
    """

    def __init__(
        self,
        address: str,
        folder: Path,
        *,
        workers: int = 1,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        require("dask", "distributed")
        self._address, self._folder, self._wanted, self._note = address, folder, workers, note
        self._token = secrets.token_hex(16)
        self._jobs: dict[str, CellJob] = {}
        self._futures: dict[str, Any] = {}
        self._done: queue.Queue[tuple[str, Any]] = queue.Queue()
        self._parcels: dict[str, Parcel] = {}
        self._versions: dict[str, dict[str, str]] = {}
        self._count, self._counted_at = workers, 0.0
        self._cluster: Any = None
        self._client: Any = None

    @property
    def count(self) -> int:
        """The number of threads of all workers, at least 1."""
        if time.monotonic() - self._counted_at > _FRESH:
            with suppress(OSError, RuntimeError, TimeoutError):
                self._count = max(1, sum(self._client.nthreads().values()))
            self._counted_at = time.monotonic()
        return self._count

    def check(self, cells: Sequence[Cell]) -> None:
        """Raise LrtfliteError if workers have other versions, or cannot get a data set."""
        workers = self._client.nthreads()
        if not workers:
            self._note(f"waiting for workers of {self._address}")
            return
        write_atomic(self._folder / TOKEN_FILE, self._token)
        own = versions_here()
        for address, found in self._client.run(versions_here).items():
            for name, version in found.items():
                if own[name] != version:
                    raise InputError(
                        f"Expected {name} {own[name]} on every worker, got {version} on {address}",
                        "install the same versions everywhere",
                    )
        parcels = [parcel for cell in cells for parcel in self._data(cell.parsed).values()]
        needed = list({each.digest: each for each in parcels}.values())
        for address, paths in self._client.run(lacking, needed).items():
            for parcel in needed:
                if parcel.path in paths and parcel.size > MAX_BYTES:
                    raise DataError(
                        f"Expected {parcel.path} on every worker, or at most {MAX_BYTES:,} bytes "
                        f"to ship, got {parcel.size:,} bytes, and no copy on {address}",
                        "copy it to the same path there",
                    )

    def submit(self, job: CellJob) -> None:
        self._jobs[job.digest] = job
        self._send(job, {})

    def next(self) -> Outcome:
        """Wait for the next record or error of a job; send lost ones again."""
        while True:
            try:
                digest, future = self._done.get(timeout=1.0)
            except queue.Empty:
                if self._client.status not in ("running", "connecting"):
                    self._reconnect()
                continue
            if future is not self._futures.get(digest):
                continue  # it was sent again meanwhile
            outcome = self._outcome(self._jobs[digest], future)
            if outcome is not None:
                del self._futures[digest], self._jobs[digest]
                return outcome

    def _outcome(self, job: CellJob, future: Any) -> Outcome | None:
        """Return the outcome of a future; None if the job was sent again."""
        if future.status == "error":
            return Outcome(job, error=future.exception())
        try:
            reply = future.result(timeout=CONNECT) if future.status == "finished" else None
        except Exception:  # the record was lost on its way
            reply = None
        if reply is None:
            self._reconnect()
            if self._futures.get(job.digest) is future:
                self._send(job, {})
            return None
        if reply.lacks:
            parcels = self.order(job).parcels
            self._send(job, {name: parcels[name].packed() for name in reply.lacks})
            return None
        return Outcome(job, record=reply.record)

    def _send(self, job: CellJob, shipped: dict[str, bytes]) -> None:
        future = self._client.submit(run_order, self.order(job), shipped, pure=False)
        self._futures[job.digest] = future
        future.add_done_callback(lambda each: self._done.put((job.digest, each)))

    def order(self, job: CellJob) -> Order:
        """Return a job with everything that a worker needs for it."""
        ships = job.bundle is not None and not is_packaged(job.bundle)
        bundle = self._parcel(str(job.bundle)) if ships else None
        read, folder = CellOptions.of(job.options), str(self._folder.resolve())
        runtime = read.simulate.learner.runtime
        if runtime not in self._versions:
            self._versions[runtime] = versions_here(runtime)
        versions = self._versions[runtime]
        return Order(job, folder, self._token, versions, bundle, **self._data(read))

    def _data(self, read: CellOptions) -> dict[str, Parcel]:
        """Return what a cell needs of its data set: `data` and `lists`."""
        spec = read.simulate.spec
        _, settings = split_spec(spec)
        paths = {"data": data_path(spec)}
        for name in PATH_SETTINGS:
            paths[name] = Path(settings[name]).expanduser() if name in settings else None
        return {name: self._parcel(str(path)) for name, path in paths.items() if path is not None}

    def _parcel(self, path: str) -> Parcel:
        if path not in self._parcels:
            self._parcels[path] = Parcel.of(path)
        return self._parcels[path]

    def _reconnect(self) -> None:
        """Connect again if the connection is lost, and send every job again."""
        if self._client.status == "running":
            return
        self._note(f"lost the scheduler at {self._address}; trying again")
        end = time.monotonic() + RECONNECT
        while True:
            try:
                self._connect()
                break
            except InputError:
                if time.monotonic() > end:
                    raise
        self._note(f"connected to {self._address} again")
        for job in list(self._jobs.values()):
            self._send(job, {})

    def _connect(self) -> None:
        import distributed

        make: Any = distributed.Client
        try:
            self._client = make(
                self._address if self._cluster is None else self._cluster,
                timeout=CONNECT,
                set_as_default=False,
            )
        except (OSError, TimeoutError, ValueError, ImportError) as error:
            raise InputError(
                f"Expected a Dask scheduler at {self._address}, got no answer within "
                f"{CONNECT:g} s ({type(error).__name__})",
                "check the address, such as tcp://10.0.0.1:8786",
            ) from error

    def __enter__(self) -> ClusterWorkers:
        # distributed writes a traceback to stderr for every lost connection.
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        if self._address == LOCAL:
            import distributed

            make: Any = distributed.LocalCluster
            self._cluster = make(
                n_workers=self._wanted,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
            )
        self._connect()
        workers = counted(len(self._client.nthreads()), "worker")
        self._note(f"{workers} at {self._client.scheduler.address}")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(Exception):
            for future in self._futures.values():
                future.cancel()
        for each in (self._client, self._cluster):
            if each is not None:
                with suppress(Exception):
                    each.close()
