"""Read the accuracy curves of ten runs that the authors of CORe50 published, as one zip."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lrtflite.errors import DataError
from lrtflite_firmware_sim.experiment_results.beside_paper import Beside
from lrtflite_firmware_sim.experiment_results.plan_report import benchmark_of

# Maximum size of one table in the zip, in bytes.
MAX_BYTES = 4 << 20
_NAME = "results_{}_multirun.tsv"
_STRATEGY = "# strategy:"


def read_curves(path: str | Path, rows: Sequence[Beside]) -> dict[str, NDArray[np.float64]]:
    """Return the published runs of the rows that name a curve, without the value before training.

    Only curves of the benchmark that the runs learned are returned, NICv2-79, 196 or 391: other
    streams have another number of sessions.
    """
    found: dict[str, NDArray[np.float64]] = {}
    for row in rows:
        benchmark = "" if row.group is None else benchmark_of(row.group)
        if not benchmark or not row.published.curve:
            continue
        curves = published_curves(path, benchmark)
        if row.published.curve not in curves:
            raise DataError(
                f"Expected a curve of {', '.join(curves)} in {path}, got {row.published.curve}",
                "correct `curve` in the plan",
            )
        found[row.published.name] = curves[row.published.curve][:, 1:]
    return found


def check_curves(path: str | Path) -> None:
    """Raise DataError unless a file has the curves of all three benchmarks."""
    for benchmark in ("NICv2-79", "NICv2-196", "NICv2-391"):
        published_curves(path, benchmark)


def published_curves(path: str | Path, benchmark: str) -> dict[str, NDArray[np.float64]]:
    """Return the accuracy of each strategy, (runs, tests) from 0 to 1; column 0 is before training.

    The tables have a header of four lines for each strategy, tabs between values and a comma in
    decimals.
    """
    name = _NAME.format(benchmark.rpartition("-")[2])
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo(name).file_size > MAX_BYTES:
                raise DataError(f"Expected a table of at most {MAX_BYTES:,} bytes, got {name}")
            lines = archive.read(name).decode("utf-8").splitlines()
        found: dict[str, list[list[float]]] = {}
        strategy = ""
        for line in lines:
            if line.startswith(_STRATEGY):
                strategy = line[len(_STRATEGY) :].strip()
            elif line.strip() and not line.startswith("#"):
                values = [float(value.replace(",", ".")) / 100 for value in line.split()]
                found.setdefault(strategy, []).append(values)
        return {strategy: np.array(runs) for strategy, runs in found.items()}
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        why = getattr(error, "strerror", None) or error
        raise DataError(
            f"Expected the published curves of {benchmark} in {path}, got: {why}",
            "give the zip with results_391_multirun.tsv and so on",
        ) from error
