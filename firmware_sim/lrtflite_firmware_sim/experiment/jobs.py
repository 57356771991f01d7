"""The work of an experiment, each piece in a child process: conversions, extractions, cells.

TensorFlow and a TFLite runtime in one process can crash, and a crash of either must not end the
process that hands out the work. `run_job` starts the child, `in_child` is what runs in it.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from lrtflite.errors import LrtfliteError
from lrtflite.system.capacity import machine_mb
from lrtflite.verification.child import run_child
from lrtflite.verification.limits import Limits
from lrtflite_firmware_sim.experiment.cells import FORMAT
from lrtflite_firmware_sim.experiment.names import Options

# A study may take days.
_SECONDS = 3e7
_MODULE = "lrtflite_firmware_sim.experiment.jobs"


@dataclass(frozen=True)
class SharedLatents:
    """Latents that several cells share: their digest, and the folder of all of them."""

    digest: str
    folder: str

    @property
    def path(self) -> Path:
        return Path(self.folder) / self.digest


@dataclass(frozen=True)
class CellJob:
    """Everything that a process needs to run a cell; `bundle` is None for the demo bundle."""

    digest: str
    options: Options
    axes: Options
    bundle: str | None = None
    stored: SharedLatents | None = None
    attempts: int = 1

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.axes.items()) or self.digest


@dataclass(frozen=True)
class ConvertJob:
    """A conversion: options of `convert` by name, and the folder of the bundle."""

    options: Options
    out: str

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.options.items())


def run_conversion(job: ConvertJob) -> None:
    """Convert a bundle in a child process."""
    _child("convert", {"options": dict(job.options), "out": job.out}, what=f"convert {job}")


def run_cell(job: CellJob, *, megabytes: float | None = None) -> dict[str, Any]:
    """Return the record of a cell, which ran in a child process of at most `megabytes` of RAM.

    Shared latents that are missing are extracted first, by the first process that needs them.
    """
    from lrtflite_firmware_sim.experiment.extraction import is_extracted
    from lrtflite_firmware_sim.experiment.parcels import locked

    if job.stored is not None and not is_extracted(job.stored.path):
        with locked(job.stored.path.with_suffix(".lock")):
            if not is_extracted(job.stored.path):
                _child("extract", asdict(job), what=f"the extraction for {job}", most=megabytes)
    found: dict[str, Any] = _child("cell", asdict(job), what=f"the cell {job}", most=megabytes)
    return found


def failed_record(job: CellJob, error: BaseException) -> dict[str, Any]:
    """Return the record of a cell that failed, with its error on one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return {**_record(job), "status": "failed", "error": text, "result": None}


def _record(job: CellJob) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "digest": job.digest,
        "status": "done",
        "error": None,
        "attempts": job.attempts,
        "options": dict(job.options),
        "axes": dict(job.axes),
    }


def _child(kind: str, given: Mapping[str, Any], *, what: str, most: float | None = None) -> Any:
    limits = Limits(_SECONDS, min(most or math.inf, 0.95 * machine_mb(), 1e9))
    content = json.dumps(given).encode()
    fix = "run the experiment again"
    return json.loads(
        run_child(_MODULE, kind, what=what, limits=limits, fix=fix, given=content) or b"null"
    )


def in_child(stream: BinaryIO, kind: str) -> bytes:
    """Do one piece of work in this process; see `run_child`."""
    given = json.loads(stream.read())
    kinds = {"convert": _convert, "extract": _extract, "cell": _cell}
    return json.dumps(kinds[kind](given)).encode()


def _convert(given: Mapping[str, Any]) -> None:
    from lrtflite.files.scratch import scratch_tempdir
    from lrtflite_converters.conversion.convert import convert
    from lrtflite_firmware_sim.experiment.cell_options import Request

    source, options = Request(tuple(given["options"].items())).read()
    with scratch_tempdir():
        convert(given["out"], source, options)


def _read_job(given: Mapping[str, Any]) -> CellJob:
    stored = given["stored"]
    return replace(CellJob(**given), stored=None if stored is None else SharedLatents(**stored))


def _extract(given: Mapping[str, Any]) -> None:
    from lrtflite_firmware_sim.experiment.cell_options import CellOptions
    from lrtflite_firmware_sim.experiment.extraction import extract

    job = _read_job(given)
    assert job.stored is not None
    extract(job.stored.path, job.bundle, CellOptions.of(job.options).simulate)


def _cell(given: Mapping[str, Any]) -> dict[str, Any]:
    from lrtflite.bundle.bundle import Bundle
    from lrtflite_firmware_sim.experiment.cell_options import CellOptions
    from lrtflite_firmware_sim.experiment.digests import versions_here
    from lrtflite_firmware_sim.simulation import simulate

    job = _read_job(given)
    read = CellOptions.of(job.options)
    started = time.monotonic()
    stored = None if job.stored is None else job.stored.path
    result = simulate(job.bundle, read.simulate, stored=stored)
    extracted = result.latency_ms["extract"]
    if job.bundle is not None:
        Bundle.open(job.bundle)  # unchanged since the cell began
    return {
        **_record(job),
        "versions": versions_here(read.simulate.learner.runtime),
        "seconds": round(time.monotonic() - started, 3),
        "extraction": {
            "shared": stored is not None,
            "frames": extracted.n,
            "ms_per_frame": extracted.p50,
        },
        "result": json.loads(result.to_json()),
    }


def problem(error: BaseException) -> str:
    """Return an error as one line, without advice about a command that was not given."""
    text = error.problem if isinstance(error, LrtfliteError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())
