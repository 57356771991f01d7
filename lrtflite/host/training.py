"""Host training: the first batch by the paper's schedule, or a backbone from nothing."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import tf_keras as keras

from lrtflite.data import FrameSource
from lrtflite.errors import ModelError, SessionCancelled
from lrtflite.host.epoch_loop import EpochLoop, TrainObserver, restore
from lrtflite.host.first_batch import KEPT, FirstBatch
from lrtflite.host.freeze import extract, fits, freeze, split, unfreeze
from lrtflite.host.model_file import save_model, writing_model
from lrtflite.host.renorm_schedule import LATENT_REPLAY, set_limits
from lrtflite.host.sgd import SgdTrainer
from lrtflite.host.train_checkpoint import (
    Epoch,
    TrainState,
    check_identity,
    checkpoint_path,
    load_checkpoint,
)
from lrtflite.host.train_data import Frames, Selection, TrainData, read_frames, select
from lrtflite.host.train_options import TrainOptions
from lrtflite.host.weights import network
from lrtflite.whole_file import check_writable


@dataclass(frozen=True)
class TrainResult:
    """A finished training: `model` is also in the file that was asked for.

    `best_epoch` is the epoch (from 1) whose weights the model has: the last, or, with early
    stopping, the one with the best validation accuracy. `weights` says where they started,
    `train_accuracy` how many of the training frames the saved model knows.
    """

    model: keras.Model
    labels: tuple[str, ...]
    counts: tuple[int, ...]
    history: tuple[Epoch, ...]
    best_epoch: int
    stopped_early: bool
    weights: str
    freeze_below: str
    train_accuracy: float
    held_out_frames: int
    validation_frames: int

    @property
    def held_out(self) -> float:
        """The saved model's accuracy on held-out frames; NaN where there are none."""
        return self.history[self.best_epoch - 1].held_out


def train(
    source: FrameSource,
    out: Path,
    options: TrainOptions,
    *,
    resume: bool = False,
    observer: TrainObserver | None = None,
    cancel: threading.Event | None = None,
) -> TrainResult:
    """Train on `source` and save the model as `out` (`.keras`).

    Each epoch, and a `cancel`, leaves a checkpoint beside `out`, from which `resume` goes on as
    if nothing had happened. The saved model has the class names and pattern counts in `fc7`, and
    Batch Renorm limits for latent replay. Sets the process's random seeds.
    """
    observer = observer or _NoObserver()
    cancel = cancel or threading.Event()
    path = checkpoint_path(out)
    state = _open_state(out, path, resume=resume)
    asked = {"dataset": source.name, **asdict(options)}
    if resume:
        check_identity(state, asked, path)

    keras.utils.set_random_seed(options.seed)
    selection = select(source, options)
    model, origin = network(
        weights=options.weights,
        alpha=options.alpha,
        input_size=source.size,
        classes=len(selection.labels),
        activation=options.activation,
    )
    data = _read(selection, source.size, observer, cancel)
    identity = {**asked, "start": origin, "frames": data.digest()}
    if resume:
        check_identity(state, identity, path)
    freeze(model, options.freeze_below)
    trained, shipped = model, _first_batch(data, options)
    if _runs_once(model, data, options):
        below, trained = split(model, options.freeze_below)
        data = _extract(below, data, observer, cancel)
    trainer = SgdTrainer(
        trained,
        momentum=options.momentum,
        weight_decay=options.weight_decay,
        latents=trained is not model,
    )
    if resume:
        restore(trained.weights, state.weights)
        restore(trainer.velocities, state.velocities)
    state.identity = identity

    loop = EpochLoop(trainer, data, options, state)
    for result in loop.run(observer, cancel, path):
        observer.epoch(result)
    if loop.stops_early:
        restore(trained.weights, state.best)
    counts = tuple(np.bincount(data.train.slots, minlength=len(selection.labels)).tolist())
    _finish(model, selection.labels, counts)
    save_model(model, out, batch=shipped)
    path.unlink(missing_ok=True)
    return TrainResult(
        model=model,
        labels=selection.labels,
        counts=counts,
        history=tuple(state.history),
        best_epoch=state.best_epoch + 1 if loop.stops_early else state.epoch,
        stopped_early=state.epoch < options.epochs,
        weights=origin,
        freeze_below=options.freeze_below,
        train_accuracy=loop.accuracy(data.train),
        held_out_frames=len(data.held_out),
        validation_frames=len(data.validation),
    )


class _NoObserver:
    def read(self, done: int, total: int) -> None:
        pass

    def extract(self, done: int, total: int) -> None:
        pass

    def step(self, epoch: int, step: int, steps: int, loss: float, accuracy: float) -> None:
        pass

    def epoch(self, result: Epoch) -> None:
        pass


def _open_state(out: Path, path: Path, *, resume: bool) -> TrainState:
    if out.suffix != ".keras":
        raise ModelError(f"Expected a model file name that ends in .keras, got {out}")
    if resume:
        return load_checkpoint(path)
    if path.exists():
        raise ModelError(
            f"Expected no unfinished training, got {path}; add --resume to go on, or delete it"
        )
    with writing_model(out):
        check_writable(out)
    return TrainState()


def _read(
    selection: Selection, size: int, observer: TrainObserver, cancel: threading.Event
) -> TrainData:
    def on_frame(done: int, total: int) -> None:
        observer.read(done, total)
        if cancel.is_set():
            raise SessionCancelled("Training stopped while it read its frames; run it again")

    return read_frames(selection, size=size, on_frame=on_frame)


def _runs_once(model: keras.Model, data: TrainData, options: TrainOptions) -> bool:
    """Whether the outputs of the frozen layers stay the same, and fit into memory."""
    if options.freeze_below == "images" or options.augment:
        return False
    frames = sum(map(len, (data.train, data.validation, data.held_out)))
    return fits(model, options.freeze_below, frames)


def _extract(
    below: keras.Model, data: TrainData, observer: TrainObserver, cancel: threading.Event
) -> TrainData:
    """Replace the frames by the latents of the frozen layers."""
    sets = (data.train, data.validation, data.held_out)
    done, total = 0, sum(map(len, sets))

    def on_frames(some: int) -> None:
        nonlocal done
        done += some
        observer.extract(done, total)
        if cancel.is_set():
            raise SessionCancelled(
                "Training stopped while the frozen layers read its frames; run it again"
            )

    return TrainData(
        *(Frames(extract(below, frames.images, on_frames), frames.slots) for frames in sets)
    )


def _first_batch(data: TrainData, options: TrainOptions) -> FirstBatch | None:
    """Return some frames of each class, for the memory that ships; a backbone ships none."""
    if options.schedule == "backbone":
        return None
    trained = FirstBatch(data.train.images, data.train.slots.astype(np.int32))
    return trained.sample(KEPT, np.random.default_rng(options.seed))


def _finish(model: keras.Model, labels: tuple[str, ...], counts: tuple[int, ...]) -> None:
    """Make a trained network the start of a latent-replay stream."""
    unfreeze(model)
    model.get_layer("fc7").set_labels(labels, counts)
    set_limits(model, LATENT_REPLAY)
