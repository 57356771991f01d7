"""`lrtflite convert`: make a bundle that learns on the device."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrtflite_cli.options.convert import convert_options
from lrtflite_cli.options.rates import SHORT_FORMS, chosen_rates
from lrtflite_cli.terminal import interrupts
from lrtflite_cli.terminal.cautions import caution, quantisation_warnings
from lrtflite_cli.terminal.interrupts import raising

if TYPE_CHECKING:
    from lrtflite.bundle.destination import Destination
    from lrtflite.bundle.manifest import Manifest
    from lrtflite.host.network import Network
    from lrtflite.networks.architecture import Architecture
    from lrtflite_converters.request.options import ExportOptions
    from lrtflite_converters.request.source import Source


# Options that describe the network.
NAMES_OF_SOURCE = ("model", "features", "scale", "weights", "alpha", "input_size")


@click.command()
@convert_options()
def command(out: Path, replace: bool, labels: str | None, **given: Any) -> None:
    """Make a bundle that learns on the device.

    The network is split at the replay layer. The layers below it, the feature model, are frozen
    and turn a frame into a latent. The layers above it, the head, train on the device. The bundle
    has both models, a manifest and golden vectors (test inputs with expected outputs), and is
    verified on every installed runtime.

    A device learns in sessions: in each one it records frames of one or more classes and trains
    on their latents, mixed with latents of earlier sessions from its replay memory. The training
    options are defaults, which a device can change in each session.
    """
    from lrtflite.bundle.destination import Destination
    from lrtflite.system.extras import require
    from lrtflite_converters.quantise.options import quantise_options
    from lrtflite_converters.request.options import ExportOptions
    from lrtflite_converters.request.source import Source, read_labels

    require("tensorflow", "tf_keras")
    rates = chosen_rates(given)
    source = Source(
        **{name: given.pop(name) for name in NAMES_OF_SOURCE},
        network=given["network"],
    )
    for name in (*SHORT_FORMS, "rate"):
        given.pop(name)
    quantised = quantise_options(
        given.pop("quantize"),
        calibrate=given.pop("calibrate"),
        frames=given.pop("calibration_frames"),
        epochs=given.pop("qat_epochs"),
        skip_unreadable=given.pop("skip_unreadable"),
    )
    if quantised is not None and quantised.epoch_count:
        require("tensorflow_model_optimization")
    names = read_labels(labels)
    destination = Destination.at(out, replace=replace)
    network = _own_network(source)
    if network is None:
        own = _foreign(source, given, quantises=quantised is not None)
    else:
        own = network.architecture
    options = ExportOptions(labels=names, rates=rates, own=own, quantise=quantised, **given)
    caution(replay_size=options.replay_size, batch_size=options.batch_size)
    _convert(destination, options, source, network)
    _tell(destination, source, own)


def _foreign(source: Source, given: Mapping[str, Any], *, quantises: bool) -> Architecture | None:
    """Return the layers of a foreign feature model, once the options fit it."""
    from lrtflite_converters.request.foreign import check_foreign, foreign_architecture

    if source.features is None:
        return None
    names = ("strategy", "replay_layer", "pooled", "adapt_moments")
    check_foreign(**{name: given[name] for name in names}, quantises=quantises)
    return foreign_architecture(Path(source.features).stem)


def _own_network(source: Source) -> Network | None:
    """Return the network of a user's own model, whose layers limit the other options."""
    from lrtflite_converters.keras_models.file import is_of_this_project

    if source.model is None or is_of_this_project(Path(source.model)):
        return None
    from lrtflite_converters.convert.convert import find_network

    return find_network(source)


def _convert(
    destination: Destination, options: ExportOptions, source: Source, network: Network | None
) -> None:
    calibration = None
    if options.quantise is not None:
        from lrtflite_converters.quantise.calibration import read_calibration

        size = source.input_size if network is None else network.input_size
        calibration = read_calibration(options.quantise, size=size)
    # The options were checked before this import, because TensorFlow takes seconds to load.
    from lrtflite.files.scratch import scratch_tempdir
    from lrtflite_cli.terminal.progress import stages
    from lrtflite_converters.convert.convert import convert

    with raising(), scratch_tempdir(), stages() as say:

        def stage(text: str) -> None:
            # TensorFlow's lazy imports can swallow a KeyboardInterrupt.
            if interrupts.came():
                raise KeyboardInterrupt
            say(text)

        convert(
            destination,
            options=options,
            source=source,
            network=network,
            calibration=calibration,
            stage=stage,
        )


def _tell(destination: Destination, source: Source, own: Architecture | None) -> None:
    """Print the path of the bundle on stdout, and notes for its user on stderr."""
    from lrtflite.bundle.bundle import INITIAL_FILE, Bundle
    from lrtflite.networks.demo import DEMO, DEMO_NOTE
    from lrtflite_converters.request.frame_sizes import other_frame_sizes

    out = destination.path
    manifest = Bundle.open(out).manifest
    click.echo(f"{out}")
    if destination.replaces:
        click.echo(
            f"Replaced the bundle in {out}; it cannot open states of the old bundle", err=True
        )
    click.echo(
        f"{manifest.backbone}, replay layer {manifest.replay_layer}, strategy {manifest.strategy}",
        err=True,
    )
    demo = own is None and source.model is None and source.named_weights == DEMO
    if demo:
        click.echo(DEMO_NOTE, err=True)
    if own is not None:
        click.echo(_own_note(own), err=True)
    is_model = source.model is not None and own is None
    if is_model and INITIAL_FILE not in manifest.files and manifest.labels[0] is not None:
        click.echo(
            "It ships without a replay memory, so it will forget its classes as it learns others; "
            f"lrtflite teach {out} adds one",
            err=True,
        )
    if manifest.quantisation is not None:
        click.echo(f"Quantised: {manifest.quantisation}", err=True)
        for warning in quantisation_warnings(manifest.quantisation):
            click.echo(f"Warning: {warning}", err=True)
    if manifest.measured is not None:
        click.echo(f"Costs: {manifest.measured}", err=True)
    for line in other_frame_sizes(manifest):
        click.echo(line, err=True)
    click.echo(f"Next: lrtflite inspect {out}; {_simulation(out, manifest, demo=demo)}", err=True)


def _own_note(own: Architecture) -> str:
    """Return a note about the classifier of a user's own model."""
    dropped = getattr(own, "dropped", "")
    left_out = f"Its classifier {dropped} was left out, so it" if dropped else "The bundle"
    return f"{left_out} has no classes until it is taught"


def _simulation(out: Path, manifest: Manifest, *, demo: bool) -> str:
    """Return a command that shows how well the bundle learns, within minutes."""
    words = ["lrtflite", "simulate", str(out)]
    words += [] if demo else ["--dataset", "folder:PICTURES"]
    words += ["--sessions", "2"] if manifest.trains_trunk else []
    return " ".join(words)
