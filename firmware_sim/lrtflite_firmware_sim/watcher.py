"""Progress of a simulation on stderr: bars on a terminal, otherwise one line per session."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, TextIO

from lrtflite.arguments import printable
from lrtflite.counted import classes_text, counted
from lrtflite.progress import OnProgress, Progress
from lrtflite.system.extras import missing
from lrtflite_firmware_sim.reporting.results import SessionResult, StartResult

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

# Seconds after which the check of the files is shown.
LONG = 1.0
# Maximum number of characters of a class's name beside a bar.
MAX_SHOWN = 40


class Watcher:
    """Receives every event of a simulation; this base class shows nothing."""

    @contextmanager
    def looking(self) -> Iterator[OnProgress]:
        """Enter the check of the data set's files; yield a function to call after each file."""
        yield lambda progress: None

    @contextmanager
    def running(self, sessions: int) -> Iterator[None]:
        """Enter the sessions."""
        yield

    def note(self, text: str) -> None:
        """Show a note that matters for the figures."""

    def testing(self, progress: Progress) -> None:
        """Show how many test frames were read."""

    def starting(self, result: StartResult) -> None:
        """Show the accuracy before the first session, for a bundle that shipped with classes."""

    def learning(self, classes: Sequence[str]) -> None:
        """Show that a session begins."""

    def step(self, progress: Progress) -> None:
        """Show the progress of the session."""

    def learned(self, result: SessionResult) -> None:
        """Show the result of a session that was committed and tested."""


class LineWatcher(Watcher):
    """Prints plain lines, for logs and pipes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._sessions = 0

    @contextmanager
    def looking(self) -> Iterator[OnProgress]:
        said, started = False, time.monotonic()

        def on_progress(progress: Progress) -> None:
            nonlocal said
            if not said and time.monotonic() - started > LONG:
                said = True
                self._say(f"checking {progress.total} files")

        yield on_progress

    @contextmanager
    def running(self, sessions: int) -> Iterator[None]:
        self._sessions = sessions
        yield

    def note(self, text: str) -> None:
        self._say(f"note: {text}")

    def testing(self, progress: Progress) -> None:
        if progress.done == 1:
            self._say(f"reading {progress.total} test frames")

    def learned(self, result: SessionResult) -> None:
        self._say(
            f"session {result.session}/{self._sessions}: {_name(result.classes)}"
            f"{' (new)' if result.new_classes else ''}, {counted(result.frames, 'frame')}, "
            f"{_accuracy(result)}, {result.session_ms:.0f} ms"
        )

    def starting(self, result: StartResult) -> None:
        self._say(f"at the start: {_start(result)}")

    def _say(self, text: str) -> None:
        print(printable(text), file=self._stream, flush=True)


class LiveWatcher(Watcher):
    """Draws bars on a terminal."""

    def __init__(self, stream: TextIO) -> None:
        try:
            from rich.console import Console
        except ImportError as error:
            raise missing("rich") from error
        self._console = Console(file=stream)
        self._bars: Bars | None = None
        self._test: TaskID | None = None
        self._now: TaskID | None = None
        self._all: TaskID | None = None
        self._doing = ""

    @contextmanager
    def looking(self) -> Iterator[OnProgress]:
        started = time.monotonic()
        with ExitStack() as stack:
            bar: Bars | None = None

            def on_progress(progress: Progress) -> None:
                nonlocal bar
                if bar is None and time.monotonic() - started > LONG:
                    bar = stack.enter_context(_bars(self._console))
                    bar.add_task("files", total=progress.total, said="")
                if bar is not None:
                    bar.update(bar.task_ids[0], completed=progress.done)

            yield on_progress

    @contextmanager
    def running(self, sessions: int) -> Iterator[None]:
        with _bars(self._console) as self._bars:
            self._test = self._bars.add_task("test set", total=None, said="")
            self._all = self._bars.add_task("sessions", total=sessions, said="", start=False)
            self._now = self._bars.add_task("this one", total=None, said="", visible=False)
            yield

    def note(self, text: str) -> None:
        said = printable(f"note: {text}")
        self._console.print(said, markup=False, highlight=False, emoji=False, style="dim")

    def testing(self, progress: Progress) -> None:
        if self._bars is not None and self._test is not None:
            self._bars.update(self._test, completed=progress.done, total=progress.total)

    def learning(self, classes: Sequence[str]) -> None:
        self._doing = printable(_name(classes))[:MAX_SHOWN]
        if self._bars is not None and self._all is not None:
            self._bars.start_task(self._all)

    def step(self, progress: Progress) -> None:
        if self._bars is not None and self._now is not None:
            said = f"{progress.phase} {self._doing}"
            done, total = progress.done, progress.total
            self._bars.update(self._now, completed=done, total=total, said=said, visible=True)

    def learned(self, result: SessionResult) -> None:
        if self._bars is not None and self._all is not None:
            # Keep it short, so that the bars fit into 80 columns.
            said = f"{result.accuracy_seen:.0%} of {result.classes_seen} taught"
            self._bars.update(self._all, completed=result.session, said=said)

    def starting(self, result: StartResult) -> None:
        if self._bars is not None and self._all is not None:
            said = f"{result.accuracy_known:.0%} of {len(result.classes)} shipped"
            self._bars.update(self._all, said=said)


def _accuracy(result: SessionResult) -> str:
    """Return both accuracies: early in a stream most of the test set has not been taught."""
    return (
        f"accuracy {result.accuracy_seen:.1%} on the {classes_text(result.classes_seen)} taught, "
        f"{result.accuracy:.1%} on the whole test set"
    )


def _start(result: StartResult) -> str:
    return (
        f"accuracy {result.accuracy_known:.1%} on the {classes_text(len(result.classes))} it "
        f"shipped with, {result.accuracy:.1%} on the whole test set"
    )


def watch(stream: TextIO | None = None) -> Watcher:
    """Return bars for a terminal, lines for any other stream; the default is stderr."""
    stream = stream or sys.stderr
    return LiveWatcher(stream) if stream.isatty() else LineWatcher(stream)


def _bars(console: Console) -> Bars:
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bars
    from rich.progress import TimeRemainingColumn as Remaining

    columns = (
        TextColumn("{task.description:<9}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        Remaining(),
        TextColumn("{task.fields[said]}", markup=False),
    )
    return Bars(*columns, console=console, transient=True)


def _name(classes: Sequence[str]) -> str:
    return classes[0] if len(classes) == 1 else classes_text(len(classes))
