"""The output of `lrtflite train`: progress on stderr, the result on stdout."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from lrtflite.progress import Phase, Progress
from lrtflite_cli.terminal.output import plain, say

if TYPE_CHECKING:
    from lrtflite.host.training import TrainResult
    from lrtflite.host.training.advice import Advice
    from lrtflite.host.training.checkpoint import Epoch
    from lrtflite.host.training.observer import TrainObserver


def as_text(
    result: TrainResult, advice: Advice, out: Path, export_npz: Path | None, *, of_classes: int
) -> str:
    """Return the result in a few lines; the last one is the next step."""
    trained = len(result.labels)
    lines = [
        f"{out}: {trained if trained == of_classes else f'{trained} of {of_classes}'} classes, "
        f"{sum(result.counts)} frames, epoch {result.best_epoch} of {len(result.history)}"
        + (" (stopped early)" if result.stopped_early else ""),
        f"held-out accuracy {percent(result.held_out)} of {result.held_out_frames} frames, "
        f"training accuracy {percent(result.train_accuracy)}",
        f"started from {result.weights}; trained above {result.freeze_below}",
    ]
    if export_npz is not None:
        lines.append(f"{export_npz}: the backbone's weights")
    return "\n".join([*lines, f"next: {advice.next}"])


def as_json(
    result: TrainResult,
    advice: Advice,
    out: Path,
    export_npz: Path | None,
    *,
    skipped: tuple[str, ...],
) -> str:
    """Return the result as JSON."""
    history = [asdict(epoch) for epoch in result.history]
    for epoch in history:
        epoch["held_out"] = _number(epoch["held_out"])
    record = {
        "model": str(out),
        "npz": None if export_npz is None else str(export_npz),
        "labels": result.labels,
        "counts": result.counts,
        "best_epoch": result.best_epoch,
        "stopped_early": result.stopped_early,
        "weights": result.weights,
        "freeze_below": result.freeze_below,
        "train_accuracy": result.train_accuracy,
        "held_out_accuracy": _number(result.held_out),
        "held_out_frames": result.held_out_frames,
        "skipped_files": skipped,
        "history": history,
        "warnings": advice.warnings,
        "next": advice.next,
    }
    return json.dumps(record, indent=2)


def _number(share: float) -> float | None:
    """Return None for NaN, the accuracy without held-out frames: JSON has no NaN."""
    return None if math.isnan(share) else share


def percent(share: float) -> str:
    """Return a share as a percentage; "unknown" for NaN."""
    return "unknown" if math.isnan(share) else f"{share:.1%}"


def _epoch_line(result: Epoch, epochs: int) -> str:
    line = (
        f"epoch {result.epoch}/{epochs}  loss {result.loss:.4f}  "
        f"accuracy {percent(result.accuracy)}  held-out {percent(result.held_out)}"
    )
    if result.validation is not None:
        line += f"  validation {percent(result.validation)}"
    return line


def progress(epochs: int) -> AbstractContextManager[TrainObserver]:
    """Return an observer: progress bars on a terminal, otherwise one line per epoch."""
    try:
        import rich  # noqa: F401
    except ImportError:
        return nullcontext(_PlainProgress(epochs))
    return _rich_progress(epochs) if sys.stderr.isatty() else nullcontext(_PlainProgress(epochs))


class _PlainProgress:
    """Prints one line per epoch on stderr."""

    def __init__(self, epochs: int) -> None:
        self._epochs = epochs

    def progress(self, progress: Progress) -> None:
        if progress.done == progress.total:
            did = "read" if progress.phase == Phase.READ else "passed through the frozen layers"
            say(f"{progress.total} frames {did}", err=True)

    def step(self, epoch: int, step: int, steps: int, loss: float, accuracy: float) -> None:
        pass

    def epoch(self, result: Epoch) -> None:
        say(_epoch_line(result, self._epochs), err=True)


@contextmanager
def _rich_progress(epochs: int) -> Iterator[TrainObserver]:
    """Yield an observer with a progress bar on stderr: frames first, then steps of each epoch."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as RichProgress
    from rich.progress import TimeRemainingColumn as Remaining

    class Bars(_PlainProgress):
        def progress(self, progress: Progress) -> None:
            text = "reading frames" if progress.phase == Phase.READ else "frozen layers"
            bar.update(task, description=text, completed=progress.done, total=progress.total)

        def step(self, epoch: int, step: int, steps: int, loss: float, accuracy: float) -> None:
            text = f"epoch {epoch}/{epochs}  loss {loss:.4f}  accuracy {percent(accuracy)}"
            bar.update(task, description=text, completed=step, total=steps)

        def epoch(self, result: Epoch) -> None:
            bar.console.print(plain(_epoch_line(result, epochs)), soft_wrap=True)
            bar.reset(task)

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Remaining())
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)
        yield Bars(epochs)
