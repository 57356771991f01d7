"""The options of every command that says how a session trains."""

from __future__ import annotations

from typing import Any, Callable

import click


def training_options(*, epochs: str, lr: str, trunk_lr: str) -> Callable[[Any], Any]:
    """`--epochs`, `--lr` and `--trunk-lr`; the words say what each is when it is not given."""
    options = (
        click.option(
            "--epochs",
            type=click.IntRange(min=1),
            help="Passes over a session's frames. Very short sessions run extra passes.",
            show_default=epochs,
        ),
        click.option(
            "--lr",
            type=click.FloatRange(min=0),
            help="Learning rate of the last layer.",
            show_default=lr,
        ),
        click.option(
            "--trunk-lr",
            type=click.FloatRange(min=0),
            help="Learning rate of the layers between the replay layer and the last one.",
            show_default=trunk_lr,
        ),
    )

    def decorate(command: Any) -> Any:
        for option in reversed(options):  # click lists the last one applied first
            command = option(command)
        return command

    return decorate
