"""The cells of a plan: combinations of its axes, each with a digest of all that decides it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from lrtflite.bundle.bundle import MANIFEST_FILE, Bundle, demo_bundle, is_packaged
from lrtflite.errors import InputError, LrtfliteError
from lrtflite.system.extras import require
from lrtflite_firmware_sim.experiment.cell_options import CellOptions, Request
from lrtflite_firmware_sim.experiment.digests import (
    data_identity,
    digest_of,
    file_identities,
    tree_digest,
    versions_here,
)
from lrtflite_firmware_sim.experiment.names import OWN_RATES, RATE, Options
from lrtflite_firmware_sim.experiment.plan_file import PlanFile
from lrtflite_firmware_sim.plan import open_dataset

FORMAT = 1
# Maximum number of cells without --yes.
MANY = 10_000
# Options of a conversion that may name a file.
_FILES = ("model", "weights", "features", "labels")
# Options that hardly change how long a cell takes.
_SAME_TIME = ("seed", "split-seed", *OWN_RATES)


@dataclass(frozen=True)
class Cell:
    """One run: its options by their names in the plan; `axes` are those that vary in the grid.

    `record` is its outcome as JSON, None until it has run.
    """

    digest: str
    options: Options
    axes: Options
    record: dict[str, Any] | None = None
    read: CellOptions | None = field(default=None, repr=False, compare=False)

    @property
    def is_done(self) -> bool:
        return self.record is not None and self.record["status"] == "done"

    @property
    def kind(self) -> str:
        """Return the digest of the options that decide how long the cell takes."""
        slow = {
            name: value
            for name, value in self.options.items()
            if name not in _SAME_TIME and not name.startswith(f"{RATE}.")
        }
        return digest_of({**slow, "epochs": self.options.get("epochs")})

    @property
    def parsed(self) -> CellOptions:
        return CellOptions.of(self.options) if self.read is None else self.read

    def with_record(self, record: dict[str, Any] | None) -> Cell:
        return replace(self, record=record)

    def __str__(self) -> str:
        return ", ".join(f"{name}={shown_value(value)}" for name, value in self.axes.items())


def shown_value(value: object) -> str:
    """Return a value as it is written in a plan, without quotes."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def cells_of(
    plan: PlanFile, *, yes: bool = False, on_cell: Callable[[int, int], None] | None = None
) -> list[Cell]:
    """Return the cells of a plan; raise LrtfliteError for an invalid option.

    A plan of more than MANY cells needs `yes`. `on_cell(done, total)` is called after each.
    """
    if plan.size > MANY and not yes:
        raise InputError(
            f"Expected at most {MANY:,} cells, got {plan.size:,}",
            "give --yes to run them all, or make the grid smaller",
        )
    tree_digest.cache_clear()  # files may have changed since another call
    checker = _Checker()
    cells: dict[str, Cell] = {}
    for options, axes in _points(plan):
        cell = checker.cell(options, axes)
        cells.setdefault(cell.digest, cell)
        if on_cell is not None:
            on_cell(len(cells), plan.size)
    return list(cells.values())


def _points(plan: PlanFile) -> Iterator[tuple[Options, Options]]:
    for grid in plan.grids:
        for point in grid.points():
            yield {**grid.fixed, **point}, point


class _Checker:
    """Checks cells; bundles and data sets that several cells share are read only once."""

    def __init__(self) -> None:
        self._bundles: dict[object, tuple[str, int | None]] = {}
        self._data: dict[object, str] = {}
        self._versions: dict[tuple[str, bool], dict[str, str]] = {}

    def cell(self, options: Options, axes: Options) -> Cell:
        try:
            read = CellOptions.of(options)
            bundle, size = self._bundle(read)
            data = self._data_of(read, size)
        except LrtfliteError as error:
            where = ", ".join(f"{name}={shown_value(value)}" for name, value in axes.items())
            raise type(error)(
                f"{error.problem} (in the cell {where})" if where else error.problem, error.advice
            ) from error
        simulate = {**asdict(read.simulate), "dataset": data}
        key = read.simulate.learner.runtime, read.request is not None
        if key not in self._versions:
            self._versions[key] = versions_here(key[0], converts=key[1])
        decides = [FORMAT, simulate, bundle, self._versions[key]]
        return Cell(digest_of(decides), options, axes, read=read)

    def _bundle(self, read: CellOptions) -> tuple[str, int | None]:
        """Return the digest of a bundle, and the size of its frames if that is known already."""
        key = (read.request, read.bundle, tuple(read.simulate.rates.items()))
        if key not in self._bundles:
            read.check()
            self._bundles[key] = _identified(read.request, read.bundle)
        return self._bundles[key]

    def _data_of(self, read: CellOptions, size: int | None) -> str:
        """Return what identifies the data set, which is opened once, so that all files are seen."""
        options = read.simulate
        if options.spec not in self._data:
            open_dataset(options, size=size or 128)
            self._data[options.spec] = data_identity(options.spec)
        return self._data[options.spec]


def _identified(request: Request | None, path: Path | None) -> tuple[str, int | None]:
    if request is None:
        if path is None:
            with demo_bundle() as folder:
                return bundle_identity(folder)
        return bundle_identity(path)
    require("tensorflow", "tf_keras")
    source, _ = request.read()
    size = None if source.model is not None or source.features is not None else source.input_size
    return request_digest(request), size


def bundle_identity(path: Path) -> tuple[str, int]:
    """Return the digest of a bundle's manifest, which covers its files; and its frame size."""
    bundle = Bundle.open(path)
    if is_packaged(path):
        return digest_of([str(path), bundle.identity]), bundle.manifest.input_size
    return tree_digest(bundle.path / MANIFEST_FILE), bundle.manifest.input_size


def request_digest(request: Request) -> str:
    """Return the digest of everything that decides a converted bundle."""
    source, options = request.read()
    given = dict(request.options)
    data = data_identity(str(given["calibrate"])) if "calibrate" in given else None
    files = file_identities(given, _FILES)
    return digest_of(
        [FORMAT, asdict(source), asdict(options), files, data, versions_here(converts=True)]
    )
