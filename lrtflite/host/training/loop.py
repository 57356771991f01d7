"""The training loop: epochs of mini-batches that can stop after any step and be resumed."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from lrtflite.errors import ModelError, SessionCancelled
from lrtflite.host.training.augment import augment
from lrtflite.host.training.checkpoint import Epoch, TrainState, save_checkpoint
from lrtflite.host.training.data import Frames, TrainData
from lrtflite.host.training.observer import TrainObserver
from lrtflite.host.training.options import TrainOptions
from lrtflite.host.training.renorm_schedule import (
    RenormLimits,
    backbone_limits,
    first_batch_limits,
    set_limits,
)
from lrtflite.host.training.sgd import SgdTrainer

# Share of all steps over which the cosine schedule raises the learning rates from near 0.
WARM_UP_SHARE = 0.05


@dataclass
class EpochLoop:
    """Trains from the step that `state` has reached, and keeps `state` up to date."""

    trainer: SgdTrainer
    data: TrainData
    options: TrainOptions
    state: TrainState

    def __post_init__(self) -> None:
        # INVARIANT: every mini-batch is full, because Batch Renorm's moments depend on its size.
        self.batch = min(self.options.batch_size, len(self.data.train))
        self.steps = math.ceil(len(self.data.train) / self.batch)
        # Validation frames choose the best epoch; without them all epochs run.
        self.stops_early = self.options.patience is not None and len(self.data.validation) > 0
        self._limits: RenormLimits | None = None

    def run(self, observer: TrainObserver, cancel: threading.Event, path: Path) -> Iterator[Epoch]:
        """Train and yield each epoch's figures, with a checkpoint at `path` after each epoch.

        Raise SessionCancelled after the step in which `cancel` was set, once its checkpoint is
        saved.
        """
        state = self.state
        while state.epoch < self.options.epochs and not self._out_of_patience():
            for frames, slots in self._minibatches():
                self._step(frames, slots, path)
                seen = state.step * self.batch
                mean_loss, accuracy = state.loss_sum / state.step, state.hits / seen
                observer.step(state.epoch + 1, state.step, self.steps, mean_loss, accuracy)
                if cancel.is_set():
                    self._checkpoint(path)
                    raise SessionCancelled(
                        f"Training stopped in epoch {state.epoch + 1} of {self.options.epochs} "
                        f"after step {state.step} of {self.steps}",
                        "run the same command with --resume to continue",
                    )
            result = self._end_epoch()
            self._checkpoint(path)
            yield result

    def _minibatches(self) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64]]]:
        """Yield frames and slots of each mini-batch that remains in the current epoch.

        Order and augmentation depend only on seed, epoch and step, so a resumed epoch repeats them.
        """
        seed, epoch, train = self.options.seed, self.state.epoch, self.data.train
        order = np.random.default_rng([seed, epoch]).permutation(len(train))
        for step in range(self.state.step, self.steps):
            places = np.arange(step * self.batch, (step + 1) * self.batch)
            rows = order.take(places, mode="wrap")  # wrap: the first rows fill up the last batch
            images = train.images[rows]
            if self.options.augment:
                images = augment(images, np.random.default_rng([seed, epoch, step]))
            yield images, train.slots[rows]

    def _step(self, frames: NDArray[np.uint8], slots: NDArray[np.int64], path: Path) -> None:
        state, options = self.state, self.options
        at = state.epoch * self.steps + state.step
        first_batch = options.schedule == "first-batch"
        self._set_limits(first_batch_limits(at) if first_batch else backbone_limits(at))
        share = rate_share(at, options.epochs * self.steps, cosine=options.cosine)
        lr, lower_lr = options.rates
        loss, hits = self.trainer.step(frames, slots, lr=share * lr, lower_lr=share * lower_lr)
        if not math.isfinite(loss):
            path.unlink(missing_ok=True)
            raise ModelError(
                f"Expected a finite loss, got {loss} in epoch {state.epoch + 1}",
                f"start again with rates below {lr:g} (--lr) and {lower_lr:g} (--lower-lr)",
            )
        state.step += 1
        state.loss_sum += loss
        state.hits += hits

    def _set_limits(self, limits: RenormLimits) -> None:
        if limits != self._limits:
            set_limits(self.trainer.model, limits)
            self._limits = limits

    def _end_epoch(self) -> Epoch:
        state = self.state
        validation = None
        if self.stops_early:
            validation = self.accuracy(self.data.validation)
            best = state.history[state.best_epoch].validation if state.history else None
            # The latest of equally good epochs is kept: accuracy on a few dozen frames reaches its
            # maximum early, while the network still improves.
            if best is None or validation >= best:
                state.best_epoch = state.epoch
                state.best = [weight.numpy() for weight in self.trainer.model.weights]
        result = Epoch(
            epoch=state.epoch + 1,
            loss=state.loss_sum / state.step,
            accuracy=state.hits / (state.step * self.batch),
            held_out=self.accuracy(self.data.held_out),
            validation=validation,
        )
        state.history.append(result)
        state.epoch, state.step, state.loss_sum, state.hits = state.epoch + 1, 0, 0.0, 0
        return result

    def accuracy(self, frames: Frames) -> float:
        """Return the share of `frames` that the current weights classify correctly; NaN if none."""
        return self.trainer.accuracy(frames.images, frames.slots, batch_size=self.batch)

    def _out_of_patience(self) -> bool:
        if not self.stops_early or self.options.patience is None:
            return False
        return self.state.epoch - 1 - self.state.best_epoch >= self.options.patience

    def _checkpoint(self, path: Path) -> None:
        self.state.weights = [weight.numpy() for weight in self.trainer.model.weights]
        self.state.velocities = [velocity.numpy() for velocity in self.trainer.velocities]
        save_checkpoint(self.state, path)


def rate_share(step: int, total: int, *, cosine: bool) -> float:
    """Return the factor of the learning rates at `step` (from 0) of `total`.

    The factor is 1, or with `cosine` a linear warm-up and then half a cosine down to 0.
    """
    if not cosine:
        return 1.0
    warm_up = max(1, round(WARM_UP_SHARE * total))
    if step < warm_up:
        return (step + 1) / warm_up
    return 0.5 * (1 + math.cos(math.pi * (step - warm_up) / max(total - warm_up, 1)))


def restore(variables: Sequence[tf.Variable], values: Sequence[NDArray[Any]]) -> None:
    """Assign `values` to `variables`, in order, or raise ModelError if they are of another run."""
    wanted = [(tuple(each.shape), each.dtype.as_numpy_dtype) for each in variables]
    if [(each.shape, each.dtype.type) for each in values] != wanted:
        raise ModelError(
            "Expected a checkpoint with the weights of this network, got others",
            "delete it and start again without --resume",
        )
    for variable, value in zip(variables, values):
        variable.assign(value)
