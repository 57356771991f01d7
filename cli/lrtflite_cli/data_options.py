"""The option of every command that reads a data set."""

from __future__ import annotations

import click

skip_unreadable = click.option(
    "--skip-unreadable",
    is_flag=True,
    help="Leave out files that cannot be read, and say how many.",
)
