"""`lrtflite sign`: sign a bundle."""

from __future__ import annotations

from pathlib import Path

import click

from lrtflite_cli.terminal.output import say


@click.command()
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option(
    "--key",
    required=True,
    type=click.Path(path_type=Path),
    help="Private key, made with `lrtflite keygen`.",
)
def command(bundle: Path, key: Path) -> None:
    """Sign BUNDLE: write manifest.sig, an Ed25519 signature of its manifest.

    The manifest has the SHA-256 of every file, so the signature covers all of them. Sign again
    after `teach`, which writes another bundle.
    """
    from lrtflite.bundle.bundle import Bundle, is_packaged
    from lrtflite.bundle.signing import sign_bundle
    from lrtflite.errors import InputError

    if is_packaged(bundle):
        raise InputError(
            f"Expected a bundle of your own to sign, got {bundle}",
            f"make one with: lrtflite bundle {bundle} --out DIR",
        )
    say(f"{sign_bundle(Bundle.open(bundle).path, key)}: signed")
