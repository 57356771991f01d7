"""The options of every command that says how a session trains: rates by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

import click

from lrtflite.errors import InputError
from lrtflite_cli.learner_options import all_of

# Rates that have an option of their own, because most people change no other.
SHORT_FORMS = ("epochs", "lr")


def training_options(*, epochs: str, lr: str) -> Callable[[Any], Any]:
    """Add `--epochs`, `--lr` and `--rate`; the words say what each is when it is not given."""
    return all_of(
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
            "--rate",
            "rate",
            metavar="NAME=VALUE",
            multiple=True,
            help="Any rate of the bundle by its name, which `lrtflite inspect` lists; may be given "
            "several times.",
        ),
    )


def chosen_rates(given: Mapping[str, Any]) -> dict[str, float]:
    """Return the rates that a user gave, by name; `given` has the options of a command."""
    rates = {name: given[name] for name in SHORT_FORMS if given[name] is not None}
    for text in given["rate"]:
        name, equals, value = text.partition("=")
        try:
            number = float(value)
        except ValueError:
            number, equals = 0.0, ""
        if not equals or not name:
            raise InputError(f"Expected --rate as NAME=VALUE, such as lr=0.01, got {text!r}")
        if name in rates:
            raise InputError(f"Expected {name} once, got it twice; leave one out")
        # A count, such as a number of epochs, is a whole number in either spelling.
        rates[name] = int(number) if number.is_integer() else number
    return rates
