"""`lrtflite train`: train the first batch, or a backbone, on the host."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrtflite_cli.data_options import dataset_option, skip_unreadable
from lrtflite_cli.interrupts import asking
from lrtflite_cli.train_printing import as_json as json_text
from lrtflite_cli.train_printing import as_text, progress

if TYPE_CHECKING:
    from lrtflite.host.train_options import TrainOptions

PATH = click.Path(path_type=Path, dir_okay=False)
POSITIVE = click.IntRange(min=1)


@click.command()
@dataset_option(default="synthetic")
@click.option(
    "--schedule",
    type=click.Choice(["first-batch", "backbone"]),
    default="first-batch",
    show_default=True,
    help="The first classes on trained weights, or a small network from nothing.",
)
@click.option("--out", type=PATH, default="model.keras", show_default=True, help="Model to save.")
@click.option(
    "--weights",
    help="Start: demo, imagenet, none, or a file.",
    show_default="demo; none for a backbone",
)
@click.option(
    "--alpha", type=float, help="Width.", show_default="the weights' own; 0.25 for a backbone"
)
@click.option("--activation", type=click.Choice(["relu6", "relu"]), show_default="the weights' own")
@click.option("--input-size", default=128, show_default=True, help="Side of the square frames.")
@click.option(
    "--freeze-below",
    metavar="LAYER",
    help="Leave all that makes this layer's output as it is: images freezes nothing, pool6 all but "
    "the last layer. `lrtflite layers` lists them.",
    show_default="conv6/dw; images for a backbone or --weights none",
)
@click.option(
    "--all-classes",
    is_flag=True,
    help="Train all classes with all their frames; the default for a folder.",
)
@click.option(
    "--first-classes",
    type=POSITIVE,
    help="Train the first batch of a stream: so many classes, their first visit.",
    show_default="all of a folder, else 10",
)
@click.option(
    "--visits",
    type=POSITIVE,
    help="Visits per class of that stream.",
    show_default="all of a folder, else 2",
)
@click.option(
    "--epochs",
    type=POSITIVE,
    help="Passes over the training frames, at most.",
    show_default="40; 30 for a backbone",
)
@click.option("--batch-size", type=click.IntRange(min=2), show_default="128; 64 for a backbone")
@click.option(
    "--lr",
    type=click.FloatRange(min=0),
    help="Learning rate of the last layer.",
    show_default="0.03; 0.1 for a backbone",
)
@click.option(
    "--trunk-lr",
    type=click.FloatRange(min=0),
    help="Learning rate of the layers below it that train.",
    show_default="0.003; --lr for a backbone",
)
@click.option("--cosine/--constant", default=None, show_default="constant; cosine for a backbone")
@click.option(
    "--weight-decay", type=click.FloatRange(min=0), show_default="0.0005; 0.0001 for a backbone"
)
@click.option(
    "--augment/--no-augment",
    default=None,
    help="Flip, shift, light.",
    show_default="for a backbone only",
)
@click.option(
    "--frames-per-video",
    type=POSITIVE,
    help="Evenly spread.",
    show_default="all; 20 for a backbone",
)
@click.option(
    "--patience",
    type=click.IntRange(min=0),
    help="Stop after so many epochs below the best accuracy on a tenth of the training frames, and "
    "keep the best epoch; 0 trains all epochs on all frames.",
    show_default="10; 0 for a backbone",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Data, stream, start and order; the same seed in `simulate` gives the same first batch.",
)
@skip_unreadable
@click.option("--resume", is_flag=True, help="Go on with a training that was interrupted.")
@click.option("--export-npz", type=PATH, help="Also write the backbone's weights, Keras names.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(
    dataset: str,
    schedule: str,
    out: Path,
    input_size: int,
    seed: int,
    all_classes: bool,
    skip_unreadable: bool,
    resume: bool,
    export_npz: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Train on this computer, and save a model that `convert --model` takes.

    A folder is trained with all its classes, any other data set with the first batch of its
    stream, as `simulate` has it. The last layers train, on weights that know such pictures:
    photographs need --weights imagenet. `--schedule backbone` trains a small network from nothing
    on all classes. Ctrl-C leaves a checkpoint; the same command with --resume goes on from it.
    """
    from lrtflite.data import open_source, skipped_files, source_notes
    from lrtflite.demo_weights import DEMO_NOTE, photographs_on_demo
    from lrtflite.errors import ModelError
    from lrtflite.host.train_advice import advise
    from lrtflite.host.training import train
    from lrtflite.host.weights import write_npz
    from lrtflite.layer_names import check_network
    from lrtflite.scratch import scratch_tempdir
    from lrtflite_firmware_sim.watcher import LineWatcher

    if export_npz is not None and export_npz.suffix != ".npz":
        raise ModelError(f"Expected --export-npz to end in .npz, got {export_npz}")
    options = _options(schedule, dataset, seed, given, all_classes=all_classes)
    check_network(options.alpha, input_size)
    with LineWatcher(sys.stderr).looking() as on_file:
        source = open_source(
            dataset, size=input_size, seed=seed, skip_unreadable=skip_unreadable, on_file=on_file
        )
    demo_note = DEMO_NOTE if photographs_on_demo(options.weights, source.name) else None
    for note in (*source_notes(source), left_out(options, len(source.classes)), demo_note):
        if note is not None:
            click.echo(note, err=True)
    cancel = threading.Event()
    with asking(cancel, say=_say_stopping), scratch_tempdir():
        with progress(options.epochs) as observer:
            result = train(source, out, options, resume=resume, observer=observer, cancel=cancel)
        if export_npz is not None:
            write_npz(result.model, export_npz)
    advice = advise(result, source, options, out=out)
    for warning in advice.warnings:
        if warning != demo_note:  # said before the training
            click.echo(f"Warning: {warning}", err=True)
    if as_json:
        skipped = skipped_files(source)
        click.echo(json_text(result, advice, out, export_npz, skipped=skipped))
    else:
        click.echo(as_text(result, advice, out, export_npz, of_classes=len(source.classes)))


def _options(
    schedule: str, dataset: str, seed: int, given: dict[str, Any], *, all_classes: bool
) -> TrainOptions:
    """The options of the schedule, with what was given in their place."""
    from lrtflite.errors import InputError
    from lrtflite.host.train_options import BACKBONE, FIRST_BATCH
    from lrtflite.manifest import trains_trunk

    chosen = {name: value for name, value in given.items() if value is not None}
    stream = "first_classes" in chosen or "visits" in chosen
    if all_classes and stream:
        raise InputError(
            "Expected --all-classes, or --first-classes and --visits, got both; leave one out"
        )
    if all_classes or (dataset.startswith("folder:") and not stream):
        chosen["first_classes"] = None
    if chosen.get("weights") == "none":
        chosen.setdefault("freeze_below", "images")
    if chosen.get("patience") == 0:
        chosen["patience"] = None
    options = replace(BACKBONE if schedule == "backbone" else FIRST_BATCH, seed=seed, **chosen)
    if "trunk_lr" in chosen and not trains_trunk(options.freeze_below):
        raise InputError(
            f"Expected no --trunk-lr with --freeze-below {options.freeze_below}, where only the "
            "last layer trains; leave it out, or freeze less"
        )
    return options


def left_out(options: TrainOptions, classes: int) -> str | None:
    """What of a data set the first batch of a stream does not have."""
    if options.schedule != "first-batch" or options.first_classes is None:
        return None
    return (
        f"The first batch of a stream: {min(options.first_classes, classes)} of {classes} classes, "
        f"visit 1 of {options.visits} each; --all-classes trains all of them with all frames"
    )


def _say_stopping() -> None:
    # The signal may have come in the middle of another line, which Python then refuses to cut.
    with suppress(RuntimeError):
        click.echo("Stopping after this step; Ctrl-C again stops at once.", err=True)
