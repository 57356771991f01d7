"""The options of every command that reads a data set."""

from __future__ import annotations

from typing import Any, Callable

import click

from lrtflite.data.registry import SOURCES, usage

SETTINGS = "Settings follow a ?, as in 'folder:things?test=0.25&classes=mug,stapler'."

skip_unreadable = click.option(
    "--skip-unreadable",
    is_flag=True,
    help="Leave out files that cannot be read, and print their number.",
)


def dataset_option(*, default: str | None = None) -> Callable[[Any], Any]:
    """Add --dataset, which lists the data sets of `SOURCES` and is required without a default."""
    *others, last = [f"{usage(name)} ({entry.summary})" for name, entry in SOURCES.items()]
    return click.option(
        "--dataset",
        metavar="DATASET",
        required=default is None,
        default=default,
        show_default=default is not None,
        help=f"{', '.join(others)} or {last}. Settings follow a ?; see `lrtflite data --help`.",
    )


def dataset_table() -> str:
    """Return the data sets of `SOURCES`, one per line, as a paragraph that Click does not wrap."""
    width = max(len(usage(name)) for name in SOURCES)
    lines = [f"  {usage(name):<{width}}  {entry.summary}" for name, entry in SOURCES.items()]
    return "\n".join(["\b", *lines])
