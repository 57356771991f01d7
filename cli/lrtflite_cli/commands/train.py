"""`lrtflite train`: train the first batch, or a backbone, on this computer."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrtflite_cli.options.data import (
    dataset_option,
    open_dataset,
    skip_unreadable,
    split_seed_option,
)
from lrtflite_cli.options.train import chosen_options, train_options
from lrtflite_cli.terminal.interrupts import asking
from lrtflite_cli.terminal.output import say, say_json
from lrtflite_cli.terminal.training import as_json as json_text
from lrtflite_cli.terminal.training import as_text, progress

if TYPE_CHECKING:
    from lrtflite.host.training import TrainOptions

FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@dataset_option(default="synthetic")
@click.option(
    "--schedule",
    type=click.Choice(["first-batch", "backbone"]),
    default="first-batch",
    show_default=True,
    help="first-batch: the classes a device starts with, on trained weights. backbone: a small "
    "network from random weights, on all classes.",
)
@click.option(
    "--out", type=FILE, default="model.keras", show_default=True, help="Model file to write."
)
@click.option("--replace", is_flag=True, help="Overwrite the model file that --out names.")
@click.option("--input-size", default=128, show_default=True, help="Side of the square frames.")
@train_options
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of data, stream, initial weights and order. The same seed gives `simulate` the same "
    "first batch.",
)
@split_seed_option
@skip_unreadable
@click.option("--resume", is_flag=True, help="Continue an interrupted run from its checkpoint.")
@click.option(
    "--export-npz",
    type=FILE,
    help="Also write the backbone's weights as .npz, under the names of keras.applications.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(
    dataset: str,
    schedule: str,
    out: Path,
    replace: bool,
    input_size: int,
    all_classes: bool,
    seed: int,
    split_seed: int | None,
    skip_unreadable: bool,
    resume: bool,
    export_npz: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Train on this computer, and save a model for `lrtflite convert --model`.

    By default the first batch is trained: the classes that a device knows before it learns more. A
    folder is trained with all its classes, any other data set with the first batch of the stream
    that `simulate` runs. Only the last layers train, so the initial weights should suit the
    pictures: photographs need --weights imagenet.

    A backbone is the network below the last layer, the classifier. `--schedule backbone` trains a
    small one, with its classifier, from random weights.

    Ctrl-C leaves a checkpoint; the same command with --resume continues from it.
    """
    from lrtflite.data import skipped_files, source_notes
    from lrtflite.errors import ModelError
    from lrtflite.files.scratch import scratch_tempdir
    from lrtflite.host.training import train
    from lrtflite.host.training.advice import advise
    from lrtflite.host.weights import write_npz
    from lrtflite.networks.demo import DEMO_NOTE, photographs_on_demo
    from lrtflite.networks.mobilenet_v1 import check_network

    if export_npz is not None and export_npz.suffix != ".npz":
        raise ModelError(
            f"Expected a file name that ends in .npz, got {export_npz}",
            "choose another --export-npz",
        )
    given["split_seed"] = split_seed
    options = chosen_options(schedule, dataset, seed, given, all_classes=all_classes)
    check_network(options.alpha, input_size)
    source = open_dataset(
        dataset, size=input_size, seed=seed, split_seed=split_seed, skip_unreadable=skip_unreadable
    )
    demo_note = DEMO_NOTE if photographs_on_demo(options.weights, source.name) else None
    for note in (*source_notes(source), left_out(options, len(source.classes)), demo_note):
        if note is not None:
            say(note, err=True)
    cancel = threading.Event()
    with asking(cancel, say=_say_stopping), scratch_tempdir():
        with progress(options.epochs) as observer:
            result = train(
                source,
                out,
                options,
                resume=resume,
                replace=replace,
                observer=observer,
                cancel=cancel,
            )
        if export_npz is not None:
            write_npz(result.model, export_npz)
    advice = advise(result, source, options, out=out)
    for warning in advice.warnings:
        if warning != demo_note:  # already printed before training
            say(f"Warning: {warning}", err=True)
    if as_json:
        skipped = skipped_files(source)
        say_json(json_text(result, advice, out, export_npz, skipped=skipped))
    else:
        say(as_text(result, advice, out, export_npz, of_classes=len(source.classes)))


def left_out(options: TrainOptions, classes: int) -> str | None:
    """Return a note on the classes and visits that are not trained; None if all are."""
    if options.first_classes is None:
        return None
    return (
        f"Only the first batch of a stream: {min(options.first_classes, classes)} of {classes} "
        f"classes, visit 1 of {options.visits} each; --all-classes trains all of them with all "
        "frames"
    )


def _say_stopping() -> None:
    # The signal may arrive while another line is being printed; Python then refuses to print.
    with suppress(RuntimeError):
        say("Stopping after this step; Ctrl-C again stops at once.", err=True)
