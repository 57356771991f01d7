"""Run a cell on a worker of a cluster, once its bundle and data are there."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lrtflite.data.spec import split_spec
from lrtflite.errors import DataError, InputError
from lrtflite.files.atomic import write_atomic
from lrtflite.system.capacity import machine_mb
from lrtflite_firmware_sim.experiment.digests import tree_digest, versions_here
from lrtflite_firmware_sim.experiment.folder import TOKEN_FILE, ExperimentFolder
from lrtflite_firmware_sim.experiment.jobs import CellJob, run_cell
from lrtflite_firmware_sim.experiment.parcels import Parcel

# Environment variable of a worker that names its cache.
CACHE = "LRTFLITE_EXPERIMENT_CACHE"


@dataclass(frozen=True)
class Order:
    """A cell for a worker: the job, the folder of the experiment, and what the cell needs.

    The worker shares the file system if that folder holds `token` there as well.
    """

    job: CellJob
    folder: str
    token: str
    versions: Mapping[str, str]
    bundle: Parcel | None = None
    data: Parcel | None = None
    lists: Parcel | None = None

    @property
    def parcels(self) -> dict[str, Parcel]:
        """Return what the cell needs, by name."""
        found = {"bundle": self.bundle, "data": self.data, "lists": self.lists}
        return {name: parcel for name, parcel in found.items() if parcel is not None}


@dataclass(frozen=True)
class Reply:
    """A record, or the names of the parcels that the worker lacks."""

    record: dict[str, Any] | None = None
    lacks: tuple[str, ...] = ()


def cache_folder() -> Path:
    """Return the folder in which this machine keeps what was shipped to it."""
    own = Path(tempfile.gettempdir()) / f"lrtflite-experiments-{os.getuid()}"
    return Path(os.environ.get(CACHE) or own)


def run_order(order: Order, shipped: Mapping[str, bytes]) -> Reply:
    """Run a cell on this worker, or return what it lacks; `shipped` has archives by name."""
    check_versions(order.versions, order.job.options)
    cache = cache_folder()
    home = ExperimentFolder(order.folder)
    shares = _shares(order)
    if not shares:
        home = ExperimentFolder(cache / order.token)
    known = home.record(order.job.digest)
    if known is not None and known["status"] == "done":
        return Reply(known)
    for name, parcel in order.parcels.items():
        if name in shipped and parcel.here(cache) is None:
            parcel.unpack(shipped[name], cache)
    places = {name: each.here(cache) for name, each in order.parcels.items()}
    lacks = tuple(name for name, place in places.items() if place is None)
    if lacks:
        for name in set(lacks) & set(shipped):
            raise DataError(
                f"Expected the {name} that was shipped in {cache}, got none",
                "check that disk",
            )
        return Reply(lacks=lacks)
    job = order.job
    if "bundle" in places:
        job = replace(job, bundle=str(places["bundle"]))
    if "data" in places:
        spec = with_path(str(job.options["dataset"]), places["data"], lists=places.get("lists"))
        job = replace(job, options={**job.options, "dataset": spec})
    if job.stored is not None and not shares:
        job = replace(job, stored=replace(job.stored, folder=str(cache / "latents")))
    record = {**run_cell(job, megabytes=ram_of_worker()), "options": dict(order.job.options)}
    # In a file, because the scheduler may end before it has passed the record on.
    write_atomic(home.cell_file(job.digest), json.dumps(record, indent=1) + "\n")
    return Reply(record)


def check_versions(wanted: Mapping[str, str], options: Mapping[str, Any]) -> None:
    """Raise InputError if this worker would compute with other versions."""
    own = versions_here(str(options.get("runtime", "auto")))
    for name, version in own.items():
        if wanted.get(name, version) != version:
            raise InputError(
                f"Expected {name} {wanted[name]} on every worker, got {version} on this one",
                "install the same versions everywhere",
            )


def lacking(parcels: list[Parcel]) -> list[str]:
    """Return the paths of parcels that this worker does not have."""
    tree_digest.cache_clear()
    return [each.path for each in parcels if each.here(cache_folder()) is None]


def with_path(spec: str, path: Path | None, *, lists: Path | None = None) -> str:
    """Return the spec of a data set with another path, or other lists."""
    name, settings = split_spec(spec)
    if lists is not None:
        settings["lists"] = str(lists)
    query = "&".join(f"{key}={value}" for key, value in settings.items())
    if path is not None:
        name = f"{name.partition(':')[0]}:{path}"
    return f"{name}?{query}" if query else name


def ram_of_worker() -> float:
    """Return the RAM of each thread of this worker, in MB."""
    from distributed import get_worker

    worker = get_worker()
    limit = worker.memory_manager.memory_limit
    threads = worker.state.nthreads
    return (machine_mb() if not limit else limit / 1e6) / threads


def _shares(order: Order) -> bool:
    try:
        return (Path(order.folder) / TOKEN_FILE).read_text(encoding="utf-8") == order.token
    except OSError:
        return False
