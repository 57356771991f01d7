"""`lrtflite verify`: prove a bundle on the runtime at hand."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from lrtflite.errors import BundleError


@click.command()
@click.argument("bundle", type=click.Path())
@click.option("--runtime", default="auto", show_default=True, help="auto, litert or tflite.")
@click.option("--json", "as_json", is_flag=True, help="Print the checks as JSON.")
def command(bundle: str, runtime: str, as_json: bool) -> None:
    """Prove BUNDLE on the runtime at hand.

    Checks hashes, op set, signatures and shapes, and replays the golden vectors: latents, a few
    training steps and the state after them must come out as TensorFlow computed them.
    """
    from lrtflite.quiet import quiet_stderr
    from lrtflite.verify import verify_bundle

    # The runtimes announce their delegate on stderr.
    with quiet_stderr():
        checks = verify_bundle(bundle, runtime=runtime)
    if as_json:
        click.echo(json.dumps([asdict(check) for check in checks], indent=2))
    else:
        for check in checks:
            click.echo(f"{'ok  ' if check.passed else 'FAIL'}  {check.name}: {check.seen}")
    failed = [check.name for check in checks if not check.passed]
    if failed:
        raise BundleError(f"{bundle} does not prove itself ({', '.join(failed)}); convert it again")
