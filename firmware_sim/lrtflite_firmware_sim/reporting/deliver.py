"""Write the results of a simulation: a JSON file, an HTML report, or neither."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lrtflite.errors import LrtfliteError
from lrtflite.files.atomic import check_writable, write_atomic, writing
from lrtflite_firmware_sim.reporting.results import Simulation

STDOUT = "-"


@dataclass(frozen=True)
class Delivered:
    """The files that were written, and one error message for each that was not."""

    files: tuple[str, ...]
    errors: tuple[str, ...]


@dataclass(frozen=True)
class Delivery:
    """The requested paths. A `json_path` of `-` means stdout, to which the caller prints."""

    json_path: str | None = None
    report_path: str | None = None

    def check(self) -> None:
        """Raise LrtfliteError if a file cannot be written; to be called before a long run."""
        if self.report_path == STDOUT:
            raise LrtfliteError(
                "Expected a file for the report, got -", "give a file name, only --json may be -"
            )
        files = [path for path in (self._json_file, self.report_path) if path is not None]
        for path in files:
            with writing(path):
                check_writable(_expanded(path))
        if len({_expanded(path).resolve() for path in files}) < len(files):
            raise LrtfliteError(
                f"Expected two files for JSON and report, got {files[0]} twice",
                "give another name for one",
            )
        if self.report_path is not None:
            from lrtflite_firmware_sim.reporting.plot import check_plotting

            check_plotting()

    def write(self, result: Simulation) -> Delivered:
        """Write each file completely or not at all; an error in one does not stop the other."""
        files: list[str] = []
        errors: list[str] = []
        contents: tuple[tuple[str | None, Callable[[Simulation], str]], ...] = (
            (self._json_file, Simulation.to_json),
            (self.report_path, _report),
        )
        for path, content in contents:
            if path is not None:
                try:
                    text = content(result)
                    with writing(path):
                        write_atomic(_expanded(path), text)
                    files.append(path)
                except LrtfliteError as error:
                    errors.append(str(error))
        return Delivered(tuple(files), tuple(errors))

    @property
    def _json_file(self) -> str | None:
        return None if self.json_path == STDOUT else self.json_path


def _expanded(path: str) -> Path:
    """Return the path with ~ replaced with the user's home folder."""
    return Path(path).expanduser()


def _report(result: Simulation) -> str:
    from lrtflite_firmware_sim.reporting.report import html_report

    return html_report(result)
