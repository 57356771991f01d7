"""An option whose choices are the names of a table."""

from __future__ import annotations

from typing import Any, Callable

import click

from lrtflite.tables.table import Table


def table_option(flag: str, table: Table[Any], **settings: Any) -> Callable[[Any], Any]:
    """Return the option; an unknown name is an error that suggests a similar one.

    `settings` are those of `click.option`.
    """

    def check(context: click.Context, parameter: click.Parameter, name: str | None) -> str | None:
        if name is not None:
            table.check(name)
        return name

    # Not a click.Choice, which would not suggest a similar name.
    return click.option(flag, metavar=f"[{'|'.join(table)}]", callback=check, **settings)
