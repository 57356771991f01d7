"""One training run on the host, from a data set to a saved model."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import tf_keras as keras

from lrtflite.data import FrameSource
from lrtflite.errors import ModelError, SessionCancelled
from lrtflite.files.atomic import check_writable
from lrtflite.host.family import find_family
from lrtflite.host.first_batch import KEPT_FRAMES, FirstBatch
from lrtflite.host.model_file import save_model, writing_model
from lrtflite.host.training.checkpoint import (
    TrainState,
    check_identity,
    checkpoint_path,
    load_checkpoint,
)
from lrtflite.host.training.data import Frames, Selection, TrainData, read_frames, select
from lrtflite.host.training.freeze import extract, fits, freeze, split, unfreeze
from lrtflite.host.training.loop import EpochLoop, restore
from lrtflite.host.training.observer import TrainObserver, Unobserved
from lrtflite.host.training.options import TrainOptions
from lrtflite.host.training.renorm_schedule import LATENT_REPLAY, set_limits
from lrtflite.host.training.result import TrainResult
from lrtflite.host.training.sgd import SgdTrainer
from lrtflite.host.weights import mobilenet_with_weights
from lrtflite.progress import Phase, Progress
from lrtflite.replay.policies import balanced_choice


def train(
    source: FrameSource,
    out: Path,
    options: TrainOptions,
    *,
    resume: bool = False,
    replace: bool = False,
    observer: TrainObserver | None = None,
    cancel: threading.Event | None = None,
) -> TrainResult:
    """Train on `source` and save the model as `out` (`.keras`).

    An existing `out` is overwritten only with `replace` or `resume`. After each epoch, and when
    `cancel` is set, a checkpoint is saved next to `out`; `resume` continues from it as if the run
    had not been interrupted. The saved model has the class names and pattern counts in its last
    layer, and Batch Renorm limits for latent replay. Sets the process's random seeds.
    """
    observer = observer or Unobserved()
    cancel = cancel or threading.Event()
    path = checkpoint_path(out)
    state = _open_state(out, path, resume=resume, replace=replace)
    asked = {"dataset": source.name, **asdict(options)}
    if resume:
        check_identity(state, asked, path)

    keras.utils.set_random_seed(options.seed)
    selection = select(source, options)
    labels = selection.labels
    model, origin = _network(options, size=source.size, classes=len(labels))
    data = _read(selection, source.size, observer, cancel)
    identity = {**asked, "start": origin, "frames": data.digest()}
    if resume:
        check_identity(state, identity, path)
    shipped = _first_batch(data, options)
    trainer, data = _trainer(model, data, options, observer, cancel)
    if resume:
        restore(trainer.model.weights, state.weights)
        restore(trainer.velocities, state.velocities)
    state.identity = identity

    loop = EpochLoop(trainer, data, options, state)
    for epoch in loop.run(observer, cancel, path):
        observer.epoch(epoch)
    if loop.stops_early:
        restore(trainer.model.weights, state.best)
    counts = tuple(np.bincount(data.train.slots, minlength=len(labels)).tolist())
    _prepare_for_latent_replay(model, options.architecture.classifier, labels, counts)
    save_model(model, out, batch=shipped)
    path.unlink(missing_ok=True)
    return TrainResult(
        model=model,
        labels=labels,
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


def _open_state(out: Path, path: Path, *, resume: bool, replace: bool) -> TrainState:
    """Return the state to start from; raise ModelError if `out` must not or cannot be written."""
    if out.suffix != ".keras":
        raise ModelError(
            f"Expected a model file name that ends in .keras, got {out}", "choose another --out"
        )
    if resume:
        return load_checkpoint(path)
    if path.exists():
        raise ModelError(
            f"Expected no unfinished training run, got its checkpoint {path}",
            "add --resume to continue it, or delete the checkpoint",
        )
    if out.exists() and not replace:
        raise ModelError(
            f"Expected a new model file, got {out}, which exists",
            "choose another --out, or give --replace to overwrite it",
        )
    with writing_model(out):
        check_writable(out)
    return TrainState()


def _network(options: TrainOptions, *, size: int, classes: int) -> tuple[keras.Model, str]:
    """Return the network to train, and a description of the weights it starts from."""
    return mobilenet_with_weights(
        find_family(options.network),
        weights=options.weights,
        alpha=options.alpha,
        input_size=size,
        classes=classes,
        activation=options.activation,
    )


def _read(
    selection: Selection, size: int, observer: TrainObserver, cancel: threading.Event
) -> TrainData:
    def on_progress(progress: Progress) -> None:
        observer.progress(progress)
        if cancel.is_set():
            raise SessionCancelled(
                "Training stopped while it was reading frames, before there was anything to save",
                "run the same command again",
            )

    return read_frames(selection, size=size, on_progress=on_progress)


def _trainer(
    model: keras.Model,
    data: TrainData,
    options: TrainOptions,
    observer: TrainObserver,
    cancel: threading.Event,
) -> tuple[SgdTrainer, TrainData]:
    """Return a trainer of the layers that are not frozen, and the data it trains on.

    Frozen layers give the same latents in every epoch, so they run once, here, unless augmentation
    changes the frames or the latents would not fit into memory.
    """
    freeze(model, options.freeze_below)
    frames = sum(map(len, (data.train, data.validation, data.held_out)))
    runs_once = (
        not options.architecture.reads_frames(options.freeze_below)
        and not options.augment
        and fits(model, options.freeze_below, frames)
    )
    trained, scale = model, find_family(options.network).scale
    if runs_once:
        below, trained = split(model, options.freeze_below)
        data = _extract(below, data, scale, observer, cancel)
    trainer = SgdTrainer(
        trained,
        momentum=options.momentum,
        weight_decay=options.weight_decay,
        latents=runs_once,
        scale=scale,
    )
    return trainer, data


def _extract(
    below: keras.Model,
    data: TrainData,
    scale: Callable[[Any], Any],
    observer: TrainObserver,
    cancel: threading.Event,
) -> TrainData:
    """Return `data` with the frames replaced by the latents of the frozen layers."""
    sets = (data.train, data.validation, data.held_out)
    done, total = 0, sum(map(len, sets))

    def on_frames(count: int) -> None:
        nonlocal done
        done += count
        observer.progress(Progress(Phase.EXTRACT, done, total))
        if cancel.is_set():
            raise SessionCancelled(
                "Training stopped while the frozen layers were processing frames, before there was "
                "anything to save",
                "run the same command again",
            )

    return TrainData(
        *(
            Frames(extract(below, frames.images, on_frames, scale=scale), frames.slots)
            for frames in sets
        )
    )


def _first_batch(data: TrainData, options: TrainOptions) -> FirstBatch | None:
    """Return frames of each class for the replay memory that ships; None for a backbone."""
    if options.schedule == "backbone":
        return None
    slots = data.train.slots.astype(np.int32)
    kept = np.sort(balanced_choice(slots, KEPT_FRAMES, np.random.default_rng(options.seed)))
    return FirstBatch(data.train.images[kept], slots[kept])


def _prepare_for_latent_replay(
    model: keras.Model, classifier: str, labels: tuple[str, ...], counts: tuple[int, ...]
) -> None:
    """Make the trained network the starting point of learning on a device."""
    unfreeze(model)
    model.get_layer(classifier).set_labels(labels, counts)
    set_limits(model, LATENT_REPLAY)
