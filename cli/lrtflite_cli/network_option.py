"""The option `--network`, which several commands have."""

from __future__ import annotations

from typing import Any, Callable

import click

from lrtflite.networks import NETWORKS


def network_option(*, help: str) -> Callable[[Any], Any]:
    """Return the option; an unknown name is an error that suggests a similar one."""

    def check(context: click.Context, parameter: click.Parameter, name: str) -> str:
        NETWORKS.check(name)
        return name

    # Not a click.Choice, which would not suggest a similar name.
    return click.option(
        "--network",
        metavar=f"[{'|'.join(NETWORKS)}]",
        default=next(iter(NETWORKS)),
        show_default=True,
        callback=check,
        help=help,
    )
