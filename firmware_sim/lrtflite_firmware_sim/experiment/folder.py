"""The folder of an experiment: its plan, its cells, and what the cells share."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lrtflite.errors import DataError, InputError
from lrtflite.files.atomic import check_folder, write_atomic, writing
from lrtflite.files.strict_json import strict_json
from lrtflite.files.temporary_names import leftovers
from lrtflite_firmware_sim.experiment.cells import FORMAT, Cell
from lrtflite_firmware_sim.experiment.plan_file import PlanFile, parse_plan

PLAN_FILE, INDEX_FILE, LOCK_FILE = "plan.toml", "experiment.json", ".lock"
# File by which workers of a cluster recognise that they share this folder.
TOKEN_FILE = ".token"
CELLS, BUNDLES, LATENTS = "cells", "bundles", "latents"


@dataclass(frozen=True)
class Experiment:
    """An experiment as its folder holds it; cells that have not run have no record."""

    title: str | None
    about: str | None
    axes: tuple[str, ...]
    report: Mapping[str, Any] = field(repr=False)
    cells: tuple[Cell, ...] = field(repr=False)


class ExperimentFolder:
    """The paths in the folder of an experiment, and its files."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def bundles(self) -> Path:
        return self.path / BUNDLES

    @property
    def latents(self) -> Path:
        return self.path / LATENTS

    def cell_file(self, digest: str) -> Path:
        return self.path / CELLS / f"{digest}.json"

    def record(self, digest: str) -> dict[str, Any] | None:
        """Return the record of a cell; None if it has not run, or another version wrote it."""
        try:
            found = strict_json(self.cell_file(digest).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise DataError(
                f"Expected the JSON of a cell, got {self.cell_file(digest)} ({error})",
                "delete this file, and the next call runs the cell again",
            ) from error
        whole = isinstance(found, dict) and found.get("format") == FORMAT
        return found if whole and found.get("digest") == digest else None

    def with_records(self, cells: Sequence[Cell]) -> list[Cell]:
        """Return the cells, each with its record if it has run."""
        return [cell.with_record(self.record(cell.digest)) for cell in cells]

    def write_record(self, record: Mapping[str, Any]) -> None:
        """Write the record of a cell, completely or not at all."""
        with writing(self.cell_file(record["digest"])):
            write_atomic(self.cell_file(record["digest"]), json.dumps(record, indent=1) + "\n")

    def check(self, versions: Mapping[str, str], *, yes: bool = False) -> None:
        """Raise LrtfliteError if these results cannot go into this folder; create nothing.

        Results of other `versions` need `yes`: the cells run again, and old ones are left alone.
        """
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"Expected a folder, got {self.path}", "give another --out")
        with writing(self.path):
            check_folder(self.path)
        index = self._index()
        if index is None:
            known = {PLAN_FILE, INDEX_FILE, LOCK_FILE, TOKEN_FILE, CELLS, BUNDLES, LATENTS}
            others = sorted(each.name for each in self.path.glob("*") if each.name not in known)
            if others:
                raise InputError(
                    f"Expected an empty folder or one of an experiment, got {self.path} with "
                    f"{others[0]}",
                    "give another --out",
                )
            return
        before = index.get("versions", {})
        changed = [name for name in versions if before.get(name) != versions[name]]
        if index.get("format") != FORMAT or (changed and not yes):
            was = ", ".join(f"{name} {before.get(name, 'none')}" for name in changed)
            now = ", ".join(f"{name} {versions[name]}" for name in changed)
            raise InputError(
                f"Expected results of {now or f'format {FORMAT}'} in {self.path}, got results of "
                f"{was or 'another format'}",
                "give another --out, or --yes to run every cell again",
            )

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Hold the folder's lock, and remove what a killed call left half-written."""
        with writing(self.path):
            for name in (CELLS, BUNDLES, LATENTS):
                (self.path / name).mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise InputError(
                    f"Another experiment is running in {self.path}",
                    "wait for it, or give another --out",
                ) from error
            self._clean()
            yield
        finally:
            os.close(lock)

    def write_plan(self, plan: PlanFile, cells: Sequence[Cell], versions: dict[str, str]) -> None:
        """Write the plan and the list of its cells."""
        index = {
            "format": FORMAT,
            "title": plan.title,
            "about": plan.about,
            "axes": list(plan.axes),
            "cells": [
                {"digest": cell.digest, "options": cell.options, "axes": cell.axes}
                for cell in cells
            ],
            "versions": versions,
        }
        with writing(self.path):
            write_atomic(self.path / PLAN_FILE, plan.text)
            write_atomic(self.path / INDEX_FILE, json.dumps(index, indent=1) + "\n")

    def read(self) -> Experiment:
        """Return the experiment in this folder."""
        index = self._index()
        if index is None or index.get("format") != FORMAT:
            raise DataError(
                f"Expected the folder of `lrtflite experiment`, got {self.path}", "check the path"
            )
        plan = parse_plan(
            (self.path / PLAN_FILE).read_text(encoding="utf-8"), where=str(self.path / PLAN_FILE)
        )
        cells = [Cell(each["digest"], each["options"], each["axes"]) for each in index["cells"]]
        return Experiment(
            plan.title,
            plan.about,
            tuple(index["axes"]),
            plan.report,
            tuple(self.with_records(cells)),
        )

    def _index(self) -> dict[str, Any] | None:
        file = self.path / INDEX_FILE
        try:
            found = strict_json(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise DataError(
                f"Expected the JSON of an experiment, got {file} ({error})", "give another --out"
            ) from error
        return found if isinstance(found, dict) else {}

    def _clean(self) -> None:
        for folder in (self.path / CELLS, self.bundles, self.latents):
            for each in folder.glob(".*"):
                if each.is_dir():
                    shutil.rmtree(each, ignore_errors=True)
                elif each.suffix in (".json", ".part") or leftovers([each.name], files=()):
                    each.unlink(missing_ok=True)


def read_cells(path: str | Path) -> Experiment:
    """Return the experiment in a folder, with the record of every cell that has run."""
    return ExperimentFolder(path).read()
