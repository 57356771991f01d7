"""The options of every command that reads a data set."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Callable

import click

from lrtflite.data.registry import SOURCES, usage

if TYPE_CHECKING:
    from lrtflite.data import FrameSource

SETTINGS = "Settings follow a ?, as in 'folder:things?test=0.25&classes=mug,stapler'."

skip_unreadable = click.option(
    "--skip-unreadable",
    is_flag=True,
    help="Leave out files that cannot be read, and print their number.",
)

split_seed_option = click.option(
    "--split-seed",
    type=click.IntRange(min=0),
    help="Decides which frames are held out, or which objects are drawn, instead of --seed.",
    show_default="the seed",
)
seed_option = click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Decides which frames are held out, or which objects are drawn. Give other commands the "
    "same seed.",
)


def dataset_option(
    *, default: str | None = None, required: bool | None = None
) -> Callable[[Any], Any]:
    """Add --dataset, which lists the data sets of `SOURCES`.

    It is required without a default, unless `required` says otherwise.
    """
    *others, last = [f"{usage(name)} ({entry.summary})" for name, entry in SOURCES.items()]
    return click.option(
        "--dataset",
        metavar="DATASET",
        required=default is None if required is None else required,
        default=default,
        show_default=default is not None,
        help=f"{', '.join(others)} or {last}. Settings follow a ?; see `lrtflite data --help`.",
    )


def open_dataset(
    dataset: str, *, size: int, seed: int, split_seed: int | None, skip_unreadable: bool
) -> FrameSource:
    """Open a data set as these options ask for it; show a long check of its files on stderr."""
    from lrtflite.data import open_source
    from lrtflite_firmware_sim.watcher import LineWatcher

    with LineWatcher(sys.stderr).looking() as on_progress:
        return open_source(
            dataset,
            size=size,
            seed=seed if split_seed is None else split_seed,
            skip_unreadable=skip_unreadable,
            on_progress=on_progress,
        )


def dataset_table() -> str:
    """Return the data sets of `SOURCES`, one per line, as a paragraph that Click does not wrap."""
    width = max(len(usage(name)) for name in SOURCES)
    lines = [f"  {usage(name):<{width}}  {entry.summary}" for name, entry in SOURCES.items()]
    return "\n".join(["\b", *lines])
