"""Where the results of a simulation go: a JSON file, an HTML report, or neither."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lrtflite.errors import LrtfliteError
from lrtflite_firmware_sim.output import check_writable, write_whole
from lrtflite_firmware_sim.results import Simulation

STDOUT = "-"


@dataclass(frozen=True)
class Delivery:
    """The paths that were asked for. A `json_path` of `-` is stdout, which the caller prints to."""

    json_path: str | None = None
    report_path: str | None = None

    def check(self) -> None:
        """Raise now what would otherwise be lost work after a long run."""
        if self.report_path == STDOUT:
            raise LrtfliteError("Expected a file for the report, got -; only the JSON may go there")
        files = [path for path in (self._json_file, self.report_path) if path is not None]
        for path in files:
            check_writable(path)
        if len({Path(path).resolve() for path in files}) < len(files):
            raise LrtfliteError(f"Expected two files for JSON and report, got {files[0]} twice")
        if self.report_path is not None:
            from lrtflite_firmware_sim.plot import check_plotting

            check_plotting()

    def write(self, result: Simulation) -> list[str]:
        """Write the files, each whole or not at all; returns their paths."""
        written = []
        if self._json_file is not None:
            write_whole(self._json_file, result.to_json())
            written.append(self._json_file)
        if self.report_path is not None:
            from lrtflite_firmware_sim.report import html_report

            write_whole(self.report_path, html_report(result))
            written.append(self.report_path)
        return written

    @property
    def _json_file(self) -> str | None:
        return None if self.json_path == STDOUT else self.json_path
