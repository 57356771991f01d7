"""Print on stdout and stderr; the one place where text reaches the terminal.

Names of classes, files and layers come from others, and a terminal obeys control characters.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import click

from lrtflite.arguments import printable
from lrtflite.system.quiet import quiet_stderr

if TYPE_CHECKING:
    from rich.text import Text


def say(text: object, *, err: bool = False) -> None:
    """Print lines, with control characters as escapes."""
    click.echo("\n".join(map(printable, str(text).split("\n"))), err=err)


def say_json(found: Any) -> None:
    """Print values as JSON, or a text that is JSON."""
    text = found if isinstance(found, str) else json.dumps(found, indent=2)
    # The only control character that JSON's own escapes leave as it is.
    click.echo(text.rstrip("\n").replace("\x7f", "\\u007f"))


def say_drawn(drawn: str) -> None:
    """Print a drawing with its control characters; it must contain no names of others."""
    click.echo(drawn)


def show_warnings() -> None:
    """Print the warnings of the library on stderr, as `say` does."""
    log = logging.getLogger("lrtflite")
    if not any(isinstance(handler, _Warnings) for handler in log.handlers):
        log.addHandler(_Warnings(logging.WARNING))


@contextmanager
def without_runtime_notes() -> Iterator[None]:
    """Silence the runtimes, which write to stderr; print warnings of the library at the end."""
    show_warnings()
    _Warnings.held = []
    try:
        with quiet_stderr():
            yield
    finally:
        held, _Warnings.held = _Warnings.held, None
        for line in held:
            say(line, err=True)


class _Warnings(logging.Handler):
    # Lines that wait until stderr can be seen again; None while it can be.
    held: ClassVar[list[str] | None] = None

    def emit(self, record: logging.LogRecord) -> None:
        line = f"Warning: {record.getMessage()}"
        if self.held is None:
            say(line, err=True)
        else:
            self.held.append(line)


def plain(text: str) -> Text:
    """Return text for rich, which would otherwise obey markup such as [red] in it."""
    from rich.text import Text

    return Text(printable(text))
