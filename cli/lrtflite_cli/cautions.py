"""Warnings about options that are allowed but let a learner forget, one line each on stderr."""

from __future__ import annotations

import click

NO_MEMORY = (
    "Warning: --replay-size 0 keeps no latents to replay, so a learner forgets old classes as it "
    "learns new ones"
)
NO_MIXING = (
    "Warning: --batch-size 1 leaves no room for a replayed latent next to a new one, so a learner "
    "forgets old classes as it learns new ones"
)


def caution(*, replay_size: int | None, batch_size: int | None = None) -> None:
    """Print a warning for each option that makes a learner forget; None means not given."""
    if replay_size == 0:
        click.echo(NO_MEMORY, err=True)
    if batch_size == 1:
        click.echo(NO_MIXING, err=True)
