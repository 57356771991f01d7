"""Progress of a command with several phases, on stderr: bars on a terminal, else a line a phase."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Callable

import click

OnStep = Callable[[str, int, int], None]


@contextmanager
def phases(words: dict[str, str]) -> Iterator[OnStep]:
    """Yield a function of (phase, done, total); `words` say what each phase does."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeRemainingColumn as Remaining
    except ImportError:
        yield _lines(words)
        return
    if not sys.stderr.isatty():
        yield _lines(words)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Remaining())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks = {}

        def step(phase: str, done: int, total: int) -> None:
            if phase not in tasks:
                tasks[phase] = bar.add_task(words.get(phase, phase), total=total)
            bar.update(tasks[phase], completed=done, total=total)

        yield step


def _lines(words: dict[str, str]) -> OnStep:
    seen = set()

    def step(phase: str, done: int, total: int) -> None:
        if phase not in seen:
            seen.add(phase)
            click.echo(f"{words.get(phase, phase)}: {total}", err=True)

    return step
