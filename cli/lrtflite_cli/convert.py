"""`lrtflite convert`: make a bundle that learns on the device."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrtflite_cli import interrupts
from lrtflite_cli.cautions import caution
from lrtflite_cli.convert_options import convert_options
from lrtflite_cli.interrupts import raising
from lrtflite_cli.training_options import SHORT_FORMS, chosen_rates

if TYPE_CHECKING:
    from lrtflite.destination import Destination
    from lrtflite.manifest import Manifest
    from lrtflite_converters.options import ExportOptions
    from lrtflite_converters.source import Source


@click.command()
@convert_options()
def command(out: Path, replace: bool, labels: str | None, **given: Any) -> None:
    """Make a bundle that learns on the device.

    The bundle has a feature model, a trainable head, a manifest and golden vectors; it is verified
    on every installed runtime before it is put in place. How it trains is a default, which a device
    may change in each session.
    """
    from lrtflite.destination import Destination
    from lrtflite.extras import require
    from lrtflite_converters.options import ExportOptions
    from lrtflite_converters.source import Source, read_labels

    require("tensorflow", "tf_keras")
    rates = chosen_rates(given)
    source = Source(
        **{name: given.pop(name) for name in ("model", "weights", "alpha", "input_size")},
        network=given["network"],
    )
    for name in (*SHORT_FORMS, "rate"):
        given.pop(name)
    options = ExportOptions(labels=read_labels(labels), rates=rates, **given)
    destination = Destination.at(out, replace=replace)
    caution(replay_size=options.replay_size, batch_size=options.batch_size)
    _convert(destination, options, source)
    _tell(destination, source)


def _convert(destination: Destination, options: ExportOptions, source: Source) -> None:
    # What was typed is checked by now: TensorFlow takes seconds to load.
    from lrtflite.scratch import scratch_tempdir
    from lrtflite_cli.progress import stages
    from lrtflite_converters.convert import convert

    with raising(), scratch_tempdir(), stages() as say:

        def stage(text: str) -> None:
            # TensorFlow's lazy imports can swallow a KeyboardInterrupt.
            if interrupts.came():
                raise KeyboardInterrupt
            say(text)

        convert(destination, options=options, source=source, stage=stage)


def _tell(destination: Destination, source: Source) -> None:
    """Print where the bundle is, and on stderr what its user should know."""
    from lrtflite.bundle import INITIAL_FILE, Bundle
    from lrtflite.demo_weights import DEMO, DEMO_NOTE

    out = destination.path
    manifest = Bundle.open(out).manifest
    click.echo(f"{out}")
    if destination.replaces:
        click.echo(
            f"Replaced the bundle in {out}; states of the old one do not open with it", err=True
        )
    click.echo(f"{manifest.backbone}, replay layer {manifest.replay_layer}", err=True)
    demo = source.model is None and source.named_weights == DEMO
    if demo:
        click.echo(DEMO_NOTE, err=True)
    is_model = source.model is not None
    if is_model and INITIAL_FILE not in manifest.files and manifest.labels[0] is not None:
        click.echo(
            "It ships without a memory, so what it knows fades as it learns more; "
            f"lrtflite teach {out} gives it one",
            err=True,
        )
    if manifest.measured is not None:
        click.echo(f"Costs: {manifest.measured}", err=True)
    click.echo(f"Next: lrtflite inspect {out}; {_simulation(out, manifest, demo=demo)}", err=True)


def _simulation(out: Path, manifest: Manifest, *, demo: bool) -> str:
    """Return the command that shows what the bundle is worth, and that ends within minutes."""
    words = ["lrtflite", "simulate", str(out)]
    words += [] if demo else ["--dataset", "folder:PICTURES"]
    words += ["--sessions", "2"] if manifest.trains_trunk else []
    return " ".join(words)
