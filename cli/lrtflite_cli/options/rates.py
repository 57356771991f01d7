"""The options of every command that sets how a session trains: rates by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

import click

from lrtflite.errors import InputError
from lrtflite_cli.options.learner import all_of

# Rates with their own option, because most users change only these.
SHORT_FORMS = ("epochs", "lr")


def rate_options(*, epochs: str, lr: str) -> Callable[[Any], Any]:
    """Add `--epochs`, `--lr` and `--rate`; the arguments describe two defaults."""
    return all_of(
        click.option(
            "--epochs",
            type=click.IntRange(min=1),
            help="Exact number of passes over a session's frames, without the extra passes that "
            "some bundles run until a session is learned. Very short sessions still run more.",
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
            help="Set a rate (a number that training takes) by its name; `lrtflite inspect` lists "
            "the rates of a bundle. May be repeated.",
        ),
    )


def chosen_rates(given: Mapping[str, Any]) -> dict[str, float]:
    """Return the rates, by name, among the options `given` to a command."""
    rates = {name: given[name] for name in SHORT_FORMS if given[name] is not None}
    for text in given["rate"]:
        name, equals, value = text.partition("=")
        try:
            number = float(value)
        except ValueError:
            number, equals = 0.0, ""
        if not equals or not name:
            raise InputError(
                f"Expected --rate as NAME=VALUE, such as lr=0.01, got {text!r}",
                "write it like that",
            )
        if name in rates:
            raise InputError(f"Expected {name} once, got it twice", "leave one out")
        # A whole number becomes an int, because counts such as epochs must be whole.
        rates[name] = int(number) if number.is_integer() else number
    return rates
