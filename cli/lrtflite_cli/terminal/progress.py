"""Progress of a command on stderr: bars on a terminal, otherwise one line per phase."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Callable

from lrtflite.arguments import printable
from lrtflite.progress import OnProgress, Progress
from lrtflite_cli.terminal.output import say

if TYPE_CHECKING:
    from rich.console import Console


@contextmanager
def stages() -> Iterator[Callable[[str], None]]:
    """Yield a function that announces the next stage; a terminal also shows its seconds."""
    console = _terminal()
    if console is None:
        yield lambda text: say(text, err=True)
        return
    from rich.progress import Progress as Bars
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(finished_text=" "),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
    )
    with Bars(*columns, console=console) as bar:
        task = None

        def stage(text: str) -> None:
            nonlocal task
            if task is not None:
                bar.update(task, total=1, completed=1)
            task = bar.add_task(printable(text), total=None)

        yield stage
        if task is not None:
            bar.update(task, total=1, completed=1)


@contextmanager
def phases(words: dict[str, str]) -> Iterator[OnProgress]:
    """Yield a function that shows progress; `words` describe the phases."""
    console = _terminal()
    if console is None:
        yield _lines(words)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bars
    from rich.progress import TimeRemainingColumn as Remaining

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        Remaining(),
    )
    with Bars(*columns, console=console, transient=True) as bar:
        tasks = {}

        def step(progress: Progress) -> None:
            phase, total = progress.phase, progress.total
            if phase not in tasks:
                tasks[phase] = bar.add_task(words.get(phase, phase), total=total)
            bar.update(tasks[phase], completed=progress.done, total=total)

        yield step


def _lines(words: dict[str, str]) -> OnProgress:
    seen = set()

    def step(progress: Progress) -> None:
        phase = progress.phase
        if phase not in seen:
            seen.add(phase)
            say(f"{words.get(phase, phase)}: {progress.total}", err=True)

    return step


def _terminal() -> Console | None:
    """Return a console on stderr if that is a terminal and rich is installed, or None."""
    if not sys.stderr.isatty():
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(stderr=True)
