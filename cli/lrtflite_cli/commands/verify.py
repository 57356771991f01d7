"""`lrtflite verify`: check a bundle on the installed runtime."""

from __future__ import annotations

from dataclasses import asdict

import click

from lrtflite.errors import BundleError
from lrtflite.runtime.model import AUTO, RUNTIMES
from lrtflite_cli.options.learner import signature_option
from lrtflite_cli.terminal.output import say, say_json, without_runtime_notes


@click.command()
@click.argument("bundle", type=click.Path())
@click.option(
    "--runtime",
    default=AUTO,
    show_default=True,
    help=f"TFLite runtime: {', '.join((AUTO, *RUNTIMES))}.",
)
@signature_option
@click.option("--json", "as_json", is_flag=True, help="Print the checks as JSON.")
def command(bundle: str, runtime: str, require_signature: str | None, as_json: bool) -> None:
    """Check BUNDLE on the installed runtime.

    Checks hashes, ops, signatures and shapes, and runs the golden vectors, test inputs that come
    with the bundle: latents (the outputs of the replay layer, at which the network is split), a
    few training steps and the state after them must agree with the results of TensorFlow. The
    models run in a child process, so that a crash becomes an error; this is not a sandbox.
    """
    from lrtflite.verification.verify import verify_bundle

    with without_runtime_notes():
        checks = verify_bundle(bundle, runtime=runtime, require_signature=require_signature)
    if as_json:
        say_json([asdict(check) for check in checks])
    else:
        for check in checks:
            say(f"{'ok  ' if check.passed else 'FAIL'}  {check.name}: {check.seen}")
    failed = [check.name for check in checks if not check.passed]
    if failed:
        raise BundleError(
            f"Expected a bundle that passes all checks, got {bundle}, which fails "
            f"{', '.join(failed)}",
            "convert it again",
        )
