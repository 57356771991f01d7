"""The options of every command that opens a learner or says what its memory is."""

from __future__ import annotations

from typing import Any, Callable

import click
from lrtflite.memory import POLICIES

from lrtflite.runtime import MOST_THREADS, RUNTIMES, TRUNK_THREADS


def memory_options(*, replay_size: str, policy: str) -> Callable[[Any], Any]:
    """`--replay-size` and `--policy`; the words say what each is when it is not given."""
    return _all(
        click.option(
            "--replay-size",
            type=click.IntRange(min=0),
            help="Latents kept to be replayed.",
            show_default=replay_size,
        ),
        click.option(
            "--policy",
            type=click.Choice(list(POLICIES)),
            help="Which latents are kept: algorithm1, random ones as in the paper, or balanced, "
            "the same number of each class.",
            show_default=policy,
        ),
    )


def learner_options(*, replay_size: str, policy: str) -> Callable[[Any], Any]:
    """`--replay-size`, `--policy`, `--threads`, `--runtime`, `--seed`; words for two defaults."""
    return _all(
        memory_options(replay_size=replay_size, policy=policy),
        click.option(
            "--threads",
            type=click.IntRange(1, MOST_THREADS),
            help="Of the TFLite runtime.",
            show_default=f"1 at pool6; below it the cores there are, at most {TRUNK_THREADS}",
        ),
        click.option(
            "--runtime",
            type=click.Choice(["auto", *RUNTIMES]),
            default="auto",
            show_default=True,
            help="ai-edge-litert or tflite-runtime.",
        ),
        click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True),
    )


def _all(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def decorate(command: Any) -> Any:
        for option in reversed(options):  # click lists the last one applied first
            command = option(command)
        return command

    return decorate
