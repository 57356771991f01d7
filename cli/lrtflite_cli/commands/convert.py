"""`lrtflite convert`: make a bundle that learns on the device."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrtflite_cli.options.convert import convert_options
from lrtflite_cli.options.rates import SHORT_FORMS, chosen_rates
from lrtflite_cli.terminal import interrupts
from lrtflite_cli.terminal.cautions import caution, one_by_one, quantisation_warnings
from lrtflite_cli.terminal.interrupts import raising
from lrtflite_cli.terminal.output import say

if TYPE_CHECKING:
    from lrtflite.bundle.manifest import Manifest
    from lrtflite.networks.architecture import Architecture
    from lrtflite_converters.conversion.convert import Converted
    from lrtflite_converters.request.options import ConvertOptions
    from lrtflite_converters.request.source import Source


# Options that describe the network.
NAMES_OF_SOURCE = (
    *("network", "model", "features", "scale"),
    *("weights", "alpha", "input_size", "activation"),
)


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
    # Most options are checked before TensorFlow is imported, because that takes seconds.
    from lrtflite.files.scratch import scratch_tempdir
    from lrtflite_cli.terminal.progress import stages
    from lrtflite_converters.conversion.convert import convert
    from lrtflite_converters.quantise.options import quantise_options
    from lrtflite_converters.request.options import ConvertOptions
    from lrtflite_converters.request.source import Source, read_labels

    rates = chosen_rates(given)
    source = Source(**{name: given.pop(name) for name in NAMES_OF_SOURCE})
    for name in (*SHORT_FORMS, "rate"):
        given.pop(name)
    quantised = quantise_options(
        given.pop("quantize"),
        calibrate=given.pop("calibrate"),
        frames=given.pop("calibration_frames"),
        epochs=given.pop("qat_epochs"),
        skip_unreadable=given.pop("skip_unreadable"),
    )
    names = read_labels(labels)
    options = ConvertOptions(labels=names, rates=rates, quantise=quantised, **given)
    with raising(), scratch_tempdir(), stages() as show:

        def stage(text: str) -> None:
            # TensorFlow's lazy imports can swallow a KeyboardInterrupt.
            if interrupts.was_interrupted():
                raise KeyboardInterrupt
            show(text)

        converted = convert(out, source, options, replace=replace, stage=stage)
    _tell(converted, source, options)


def _tell(converted: Converted, source: Source, options: ConvertOptions) -> None:
    """Print the path of the bundle on stdout, and notes for its user on stderr."""
    from lrtflite.bundle.bundle import INITIAL_FILE, Bundle
    from lrtflite.networks.demo import DEMO, DEMO_NOTE
    from lrtflite.session.run import without_effect
    from lrtflite_converters.request.frame_sizes import other_frame_sizes

    out, own = converted.path, converted.own
    opened = Bundle.open(out)
    manifest = opened.manifest
    say(f"{out}")
    if converted.replaced:
        say(f"Replaced the bundle in {out}; it cannot open states of the old bundle", err=True)
    say(
        f"{manifest.backbone}, replay layer {manifest.layers}, strategy {manifest.strategy}",
        err=True,
    )
    demo = own is None and source.model is None and source.named_weights == DEMO
    if demo:
        say(DEMO_NOTE, err=True)
    if own is not None:
        say(_own_note(own, out), err=True)
    is_model = source.model is not None and own is None
    if is_model and INITIAL_FILE not in manifest.files and manifest.labels[0] is not None:
        say(
            "It ships without a replay memory, so it will forget its classes as it learns others; "
            f"{shlex.join(['lrtflite', 'teach', str(out)])} adds one",
            err=True,
        )
    if manifest.training.feeding.replays:
        caution(replay_size=options.replay_size, batch_size=options.batch_size)
    for warning in without_effect(opened, options.rates):
        say(f"Warning: {warning}", err=True)
    if advice := one_by_one(manifest):
        say(advice, err=True)
    if manifest.quantisation is not None:
        say(f"Quantised: {manifest.quantisation}", err=True)
        for warning in quantisation_warnings(manifest.quantisation):
            say(f"Warning: {warning}", err=True)
    if manifest.measured is not None:
        say(f"Costs: {manifest.measured}", err=True)
    for line in other_frame_sizes(manifest):
        say(line, err=True)
    inspect = shlex.join(["lrtflite", "inspect", str(out)])
    say(f"Next: {inspect}; {suggested_simulation(out, manifest, demo=demo)}", err=True)


def _own_note(own: Architecture, out: Path) -> str:
    """Return a note about the classifier of a user's own model."""
    dropped: tuple[str, ...] = getattr(own, "dropped", ())
    made_by, scale = getattr(own, "made_by", ""), getattr(own, "scale", None)
    left_out = f"Its classifier {' and '.join(dropped)} was left out, so it"
    note = f"{left_out if dropped else 'The bundle'} has no classes until it is taught"
    if not made_by:
        return note
    scaled = f", and its frames are scaled to {scale}" if scale else ""
    teach = ["lrtflite", "teach", str(out), "--dataset", "tm:PROJECT.tm"]
    return f"A model of {made_by}{scaled}. {note}: {shlex.join(teach)}"


def suggested_simulation(out: Path, manifest: Manifest, *, demo: bool) -> str:
    """Return a command that shows how well the bundle learns, within minutes."""
    words = ["lrtflite", "simulate", str(out)]
    words += [] if demo else ["--dataset", "folder:PICTURES"]
    words += ["--sessions", "2"] if manifest.trains_trunk else []
    return shlex.join(words)
