"""`lrtflite train`: train the first batch, or a backbone, on the host."""

from __future__ import annotations

import json
import math
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrtflite_cli.data_options import skip_unreadable
from lrtflite_cli.interrupts import asking

if TYPE_CHECKING:
    from lrtflite.host.epoch_loop import TrainObserver
    from lrtflite.host.train_checkpoint import Epoch
    from lrtflite.host.train_options import TrainOptions
    from lrtflite.host.training import TrainResult

PATH = click.Path(path_type=Path, dir_okay=False)
POSITIVE = click.IntRange(min=1)


@click.command()
@click.option(
    "--dataset",
    default="synthetic",
    show_default=True,
    help="synthetic, synthetic-backbone, folder:PATH or core50:PATH.",
)
@click.option(
    "--schedule",
    type=click.Choice(["first-batch", "backbone"]),
    default="first-batch",
    show_default=True,
    help="The paper's training of the first batch, or a network from nothing.",
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
    "--first-classes", type=POSITIVE, help="Classes of the first batch.", show_default="10"
)
@click.option("--visits", type=POSITIVE, help="Visits per class of its stream.", show_default="2")
@click.option("--epochs", type=POSITIVE, show_default="4; 30 for a backbone")
@click.option("--batch-size", type=click.IntRange(min=2), show_default="128; 64 for a backbone")
@click.option("--lr", type=click.FloatRange(min=0), show_default="0.001; 0.1 for a backbone")
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
    type=POSITIVE,
    help="Stop after so many epochs without a better accuracy on a tenth of the training frames, "
    "and keep the best epoch.",
    show_default="never",
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
    skip_unreadable: bool,
    resume: bool,
    export_npz: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Train on this computer, and save a model that `convert --model` takes.

    By default the first batch of a learning stream, with the paper's schedule: 4 epochs of SGD,
    Batch Renorm eased in. `--schedule backbone` trains a small network from nothing on all
    classes. Ctrl-C leaves a checkpoint; the same command with --resume goes on from it.
    """
    from lrtflite.data import open_source, skipped_files, source_notes
    from lrtflite.errors import ModelError
    from lrtflite.host.train_options import BACKBONE, FIRST_BATCH
    from lrtflite.host.training import train
    from lrtflite.host.weights import write_npz
    from lrtflite.layer_names import check_network
    from lrtflite.scratch import scratch_tempdir
    from lrtflite_firmware_sim.watcher import LineWatcher

    if export_npz is not None and export_npz.suffix != ".npz":
        raise ModelError(f"Expected --export-npz to end in .npz, got {export_npz}")
    preset = BACKBONE if schedule == "backbone" else FIRST_BATCH
    chosen = {name: value for name, value in given.items() if value is not None}
    options = replace(preset, seed=seed, **chosen)
    check_network(options.alpha, input_size)
    with LineWatcher(sys.stderr).looking() as on_file:
        source = open_source(
            dataset, size=input_size, seed=seed, skip_unreadable=skip_unreadable, on_file=on_file
        )
    for note in (*source_notes(source), left_out(options, len(source.classes))):
        if note is not None:
            click.echo(note, err=True)
    cancel = threading.Event()
    with asking(cancel, say=_say_stopping), scratch_tempdir():
        with _progress(options.epochs) as observer:
            result = train(source, out, options, resume=resume, observer=observer, cancel=cancel)
        if export_npz is not None:
            write_npz(result.model, export_npz)
    if as_json:
        click.echo(_as_json(result, out, export_npz, skipped=skipped_files(source)))
    else:
        click.echo(_as_text(result, out, export_npz))


def left_out(options: TrainOptions, classes: int) -> str | None:
    """What of a data set the first batch of a stream does not have."""
    trained = min(options.first_classes, classes)
    if options.schedule != "first-batch" or (trained == classes and options.visits == 1):
        return None
    return (
        f"The first batch of a stream: {trained} of {classes} classes, visit 1 of {options.visits} "
        f"each; to train all: --first-classes {classes} --visits 1"
    )


def _as_text(result: TrainResult, out: Path, export_npz: Path | None) -> str:
    last = result.history[result.best_epoch - 1]
    lines = [
        f"{out}: {len(result.labels)} classes, {sum(result.counts)} frames, "
        f"epoch {result.best_epoch} of {len(result.history)}"
        + (" (stopped early)" if result.stopped_early else ""),
        f"held-out accuracy {_percent(last.held_out)}, started from {result.weights}",
    ]
    if export_npz is not None:
        lines.append(f"{export_npz}: the backbone's weights")
    return "\n".join([*lines, f"next: lrtflite convert --model {out}"])


def _as_json(
    result: TrainResult, out: Path, export_npz: Path | None, *, skipped: tuple[str, ...]
) -> str:
    history = [asdict(epoch) for epoch in result.history]
    for epoch in history:
        # JSON has no NaN, which a source without test frames gives.
        epoch["held_out"] = None if math.isnan(epoch["held_out"]) else epoch["held_out"]
    record = {
        "model": str(out),
        "npz": None if export_npz is None else str(export_npz),
        "labels": result.labels,
        "counts": result.counts,
        "best_epoch": result.best_epoch,
        "stopped_early": result.stopped_early,
        "weights": result.weights,
        "skipped_files": skipped,
        "history": history,
    }
    return json.dumps(record, indent=2)


def _percent(share: float) -> str:
    return "unknown" if math.isnan(share) else f"{100 * share:.1f} %"


def _epoch_line(result: Epoch, epochs: int) -> str:
    line = (
        f"epoch {result.epoch}/{epochs}  loss {result.loss:.4f}  "
        f"accuracy {_percent(result.accuracy)}  held-out {_percent(result.held_out)}"
    )
    if result.validation is not None:
        line += f"  validation {_percent(result.validation)}"
    return line


def _say_stopping() -> None:
    # The signal may have come in the middle of another line, which Python then refuses to cut.
    with suppress(RuntimeError):
        click.echo("Stopping after this step; Ctrl-C again stops at once.", err=True)


def _progress(epochs: int) -> AbstractContextManager[TrainObserver]:
    try:
        import rich  # noqa: F401
    except ImportError:
        return nullcontext(_PlainProgress(epochs))
    return _rich_progress(epochs) if sys.stderr.isatty() else nullcontext(_PlainProgress(epochs))


class _PlainProgress:
    """One line an epoch, on stderr."""

    def __init__(self, epochs: int) -> None:
        self._epochs = epochs

    def read(self, done: int, total: int) -> None:
        if done == total:
            click.echo(f"{total} frames read", err=True)

    def step(self, epoch: int, step: int, steps: int, loss: float, accuracy: float) -> None:
        pass

    def epoch(self, result: Epoch) -> None:
        click.echo(_epoch_line(result, self._epochs), err=True)


@contextmanager
def _rich_progress(epochs: int) -> Iterator[TrainObserver]:
    """A bar for the frames to read, then one for the steps of each epoch, on stderr."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    class Bars(_PlainProgress):
        def read(self, done: int, total: int) -> None:
            bar.update(task, description="reading frames", completed=done, total=total)

        def step(self, epoch: int, step: int, steps: int, loss: float, accuracy: float) -> None:
            text = f"epoch {epoch}/{epochs}  loss {loss:.4f}  accuracy {_percent(accuracy)}"
            bar.update(task, description=text, completed=step, total=steps)

        def epoch(self, result: Epoch) -> None:
            bar.console.print(_epoch_line(result, epochs), highlight=False, soft_wrap=True)
            bar.reset(task)

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Remaining())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)
        yield Bars(epochs)
