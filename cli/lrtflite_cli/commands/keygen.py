"""`lrtflite keygen`: make a pair of keys to sign bundles with."""

from __future__ import annotations

from pathlib import Path

import click

from lrtflite_cli.terminal.output import say


@click.command()
@click.argument("key", type=click.Path(path_type=Path))
def command(key: Path) -> None:
    """Make a pair of Ed25519 keys: KEY, the private one, and KEY.pub, the public one.

    `lrtflite sign` takes the private key, which stays on your computer. Devices get the public one,
    for --require-signature and Learner.open(..., require_signature=...).
    """
    from lrtflite.bundle.signing import make_keys

    public = key.with_name(f"{key.name}.pub")
    make_keys(key, public)
    say(f"{key}: private, keep it secret")
    say(f"{public}: public, give it to every device")
