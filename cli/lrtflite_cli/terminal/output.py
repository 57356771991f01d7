"""Print on stdout and stderr; the one place where text reaches the terminal.

Names of classes, files and layers come from others, and a terminal obeys control characters.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import click

from lrtflite.arguments import printable

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


def show_warnings() -> None:
    """Print the warnings of the library on stderr, as `say` does."""
    log = logging.getLogger("lrtflite")
    if not any(isinstance(handler, _Warnings) for handler in log.handlers):
        log.addHandler(_Warnings(logging.WARNING))


class _Warnings(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say(f"Warning: {record.getMessage()}", err=True)


def plain(text: str) -> Text:
    """Return text for rich, which would otherwise obey markup such as [red] in it."""
    from rich.text import Text

    return Text(printable(text))
