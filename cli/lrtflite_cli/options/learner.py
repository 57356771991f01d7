"""The options of every command that opens a learner or sets its replay memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Callable

import click

from lrtflite.options import LearnerOptions
from lrtflite.replay.policies import POLICIES
from lrtflite.runtime.model import AUTO, MAX_THREADS, RUNTIMES, TRUNK_THREADS
from lrtflite.tables.table import first_sentence
from lrtflite_cli.options.table import table_option

signature_option = click.option(
    "--require-signature",
    metavar="KEY",
    type=click.Path(),
    help="Use BUNDLE only if it is signed with the private key of this public KEY.",
)


def memory_options(*, replay_size: str, policy: str) -> Callable[[Any], Any]:
    """Add `--replay-size` and `--policy`; the arguments describe their defaults."""
    policies = " ".join(f"{name}: {first_sentence(entry)}" for name, entry in POLICIES.items())
    return all_of(
        click.option(
            "--replay-size",
            type=click.IntRange(min=0),
            help="Latents that the replay memory keeps, to be trained with again later.",
            show_default=replay_size,
        ),
        table_option(
            "--policy",
            POLICIES,
            help=f"Rule that decides which latents the replay memory keeps. {policies}",
            show_default=policy,
        ),
    )


def learner_options(*, replay_size: str, policy: str) -> Callable[[Any], Any]:
    """Add the options of a learner; the arguments describe the defaults of two of them."""
    return all_of(
        memory_options(replay_size=replay_size, policy=policy),
        runtime_options(),
        click.option(
            "--seed",
            type=click.IntRange(min=0),
            default=0,
            show_default=True,
            help="Seed of everything random: the same seed gives the same run.",
        ),
        signature_option,
    )


def runtime_options() -> Callable[[Any], Any]:
    """Add `--threads` and `--runtime`."""
    return all_of(
        click.option(
            "--threads",
            type=click.IntRange(1, MAX_THREADS),
            help="Threads of the TFLite runtime.",
            show_default="1 where only the last layer trains; else all cores, at most "
            f"{TRUNK_THREADS}",
        ),
        click.option(
            "--runtime",
            type=click.Choice([AUTO, *RUNTIMES]),
            default=AUTO,
            show_default=True,
            help=f"TFLite runtime: {' or '.join(package for package, _ in RUNTIMES.values())}.",
        ),
    )


def chosen_learner(given: Mapping[str, Any]) -> LearnerOptions:
    """Return the learner's options among those `given` to a command."""
    names = {each.name for each in fields(LearnerOptions)}
    return LearnerOptions(**{name: value for name, value in given.items() if name in names})


def all_of(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a decorator that adds several options to a command, in this order."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):  # click lists the last one applied first
            command = option(command)
        return command

    return decorate
