"""Progress of an experiment on stderr: a table on a terminal, otherwise one line per cell."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from lrtflite.arguments import printable
from lrtflite.system.extras import missing
from lrtflite_firmware_sim.experiment.cells import Cell

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table as RichTable

# Maximum number of finished cells in the table.
SHOWN = 10
# Number of cells above which a note says that they are being checked.
MANY_TO_CHECK = 500


class ExperimentWatcher:
    """Receives every event of an experiment; this base class shows nothing."""

    def note(self, text: str) -> None:
        """Show a note."""

    @contextmanager
    def running(self, done: int, total: int) -> Iterator[None]:
        """Enter the run; `done` of `total` cells were done before."""
        yield

    def converting(self, text: str, number: int, total: int) -> None:
        """Show that a conversion begins."""

    def started(self, cell: Cell) -> None:
        """Show that a cell was given out."""

    def finished(self, record: dict[str, Any], done: int, total: int, left: float | None) -> None:
        """Show the outcome of a cell; `left` is the estimated number of seconds until the end."""

    def again(self, cell: Cell, why: str) -> None:
        """Show that a cell failed and is tried again."""


class LineWatcher(ExperimentWatcher):
    """Prints plain lines, for logs and pipes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def note(self, text: str) -> None:
        print(printable(text), file=self._stream, flush=True)

    def converting(self, text: str, number: int, total: int) -> None:
        self.note(f"bundle {number}/{total}: converting {text}")

    def finished(self, record: dict[str, Any], done: int, total: int, left: float | None) -> None:
        remaining = "" if left is None else f", {in_words(left)} left"
        self.note(f"cell {done}/{total}: {outcome(record)}{remaining}")

    def again(self, cell: Cell, why: str) -> None:
        self.note(f"trying {cell} again: {why}")


class LiveWatcher(LineWatcher):
    """Draws a table of the cells on a terminal."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        try:
            from rich.console import Console
        except ImportError as error:
            raise missing("rich") from error
        self._console = Console(file=stream)
        self._live: Live | None = None
        self._now: dict[str, tuple[str, float]] = {}
        self._last: list[str] = []
        self._title = ""

    @contextmanager
    def running(self, done: int, total: int) -> Iterator[None]:
        from rich.live import Live

        self._title = f"{done} of {total} cells"
        with Live(
            get_renderable=self._table, console=self._console, refresh_per_second=2, transient=True
        ) as self._live:
            yield
        self._live = None

    def note(self, text: str) -> None:
        said = printable(text)
        self._console.print(said, markup=False, highlight=False, emoji=False, style="dim")

    def converting(self, text: str, number: int, total: int) -> None:
        self._title = f"converting bundle {number} of {total}: {text}"

    def started(self, cell: Cell) -> None:
        self._now[cell.digest] = (str(cell) or cell.digest, time.monotonic())

    def finished(self, record: dict[str, Any], done: int, total: int, left: float | None) -> None:
        self._now.pop(record["digest"], None)
        remaining = "" if left is None else f", {in_words(left)} left"
        self._title = f"{done} of {total} cells{remaining}"
        self._last = [*self._last, outcome(record)][-SHOWN:]

    def again(self, cell: Cell, why: str) -> None:
        self._now.pop(cell.digest, None)
        super().again(cell, why)

    def _table(self) -> RichTable:
        from rich.table import Table
        from rich.text import Text

        table = Table(title=Text(printable(self._title)), box=None, show_header=False)
        for text in self._last:
            table.add_row(Text(printable(text)))
        # Cells that wait for a free worker were given out as well; show the oldest.
        for name, since in list(self._now.values())[:SHOWN]:
            seconds = in_words(time.monotonic() - since)
            table.add_row(Text(f"… {printable(name)} ({seconds})", style="dim"))
        return table


def outcome(record: dict[str, Any]) -> str:
    """Return the outcome of a cell on one line."""
    cell = Cell(record["digest"], record["options"], record["axes"])
    name = str(cell) or cell.digest
    if record["status"] != "done":
        return f"{name}: FAILED: {record['error']}"
    accuracy = record["result"]["final_accuracy"]
    return f"{name}: accuracy {accuracy:.1%}, {record['seconds']:.1f} s"


def in_words(seconds: float) -> str:
    """Return a duration such as 40 s, 12 min or 3.5 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def watch(stream: TextIO | None = None) -> ExperimentWatcher:
    """Return a table for a terminal, lines for any other stream; the default is stderr."""
    stream = stream or sys.stderr
    return LiveWatcher(stream) if stream.isatty() else LineWatcher(stream)
