"""The loop of a host training: epochs of mini-batches that can stop anywhere and go on later."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from lrtflite.errors import ModelError, SessionCancelled
from lrtflite.host.augment import augment
from lrtflite.host.renorm_schedule import (
    RenormLimits,
    backbone_limits,
    first_batch_limits,
    set_limits,
)
from lrtflite.host.sgd import SgdTrainer
from lrtflite.host.train_checkpoint import Epoch, TrainState, save_checkpoint
from lrtflite.host.train_data import Frames, TrainData
from lrtflite.host.train_options import TrainOptions

WARM_UP_SHARE = 0.05


class TrainObserver(Protocol):
    """Is told how a training goes."""

    def read(self, done: int, total: int) -> None:
        """`done` of `total` frames are in memory."""

    def extract(self, done: int, total: int) -> None:
        """`done` of `total` frames went through the frozen layers."""

    def step(self, epoch: int, step: int, steps: int, loss: float, accuracy: float) -> None:
        """`step` of `steps` are done in `epoch` (from 1); mean loss and accuracy so far in it."""

    def epoch(self, result: Epoch) -> None:
        """An epoch ended."""


@dataclass
class EpochLoop:
    """Trains from wherever `state` stands, and keeps `state` up to date."""

    trainer: SgdTrainer
    data: TrainData
    options: TrainOptions
    state: TrainState

    def __post_init__(self) -> None:
        # INVARIANT: every mini-batch is full, because Batch Renorm's moments depend on its size.
        self.batch = min(self.options.batch_size, len(self.data.train))
        self.steps = math.ceil(len(self.data.train) / self.batch)
        # Without validation frames no epoch is better than another: all of them run.
        self.stops_early = self.options.patience is not None and len(self.data.validation) > 0
        self._limits: RenormLimits | None = None

    def run(self, observer: TrainObserver, cancel: threading.Event, path: Path) -> Iterator[Epoch]:
        """Train epoch after epoch; each, and a `cancel`, leaves a checkpoint at `path`."""
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
                        f"after step {state.step} of {self.steps}; the same command with "
                        "--resume goes on"
                    )
            result = self._end_epoch()
            self._checkpoint(path)
            yield result

    def _minibatches(self) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64]]]:
        """The mini-batches of the epoch under way that are still to come: frames and slots.

        Order and augmentation depend on seed, epoch and step alone: a resumed epoch repeats them.
        """
        seed, epoch, train = self.options.seed, self.state.epoch, self.data.train
        order = np.random.default_rng([seed, epoch]).permutation(len(train))
        for step in range(self.state.step, self.steps):
            places = np.arange(step * self.batch, (step + 1) * self.batch)
            rows = order.take(places, mode="wrap")  # the last mini-batch fills up from the first
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
        lr, trunk_lr = options.rates
        loss, hits = self.trainer.step(frames, slots, lr=share * lr, trunk_lr=share * trunk_lr)
        if not math.isfinite(loss):
            path.unlink(missing_ok=True)
            raise ModelError(
                f"Expected a finite loss, got {loss} in epoch {state.epoch + 1}; "
                f"start again with lower rates than {lr:g} and {trunk_lr:g} (--lr, --trunk-lr)"
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
        accuracy, loss = self.judge(self.data.validation)
        result = Epoch(
            epoch=state.epoch + 1,
            loss=state.loss_sum / state.step,
            accuracy=state.hits / (state.step * self.batch),
            held_out=self.judge(self.data.held_out)[0],
            validation=accuracy if self.stops_early else None,
            validation_loss=loss if self.stops_early else None,
        )
        state.history.append(result)
        if self.stops_early and self._is_best(result):
            state.best_epoch = state.epoch
            state.best = [weight.numpy() for weight in self.trainer.model.weights]
        state.epoch, state.step, state.loss_sum, state.hits = state.epoch + 1, 0, 0.0, 0
        return result

    def judge(self, frames: Frames) -> tuple[float, float]:
        """Return accuracy and mean loss with the present weights; NaN for no frame."""
        return self.trainer.judge(frames.images, frames.slots, batch_size=self.batch)

    def _is_best(self, result: Epoch) -> bool:
        best = self.state.best_epoch
        return best < 0 or _rank(result) < _rank(self.state.history[best])

    def _out_of_patience(self) -> bool:
        if not self.stops_early or self.options.patience is None:
            return False
        return self.state.epoch - 1 - self.state.best_epoch >= self.options.patience

    def _checkpoint(self, path: Path) -> None:
        self.state.weights = [weight.numpy() for weight in self.trainer.model.weights]
        self.state.velocities = [velocity.numpy() for velocity in self.trainer.velocities]
        save_checkpoint(self.state, path)


def _rank(result: Epoch) -> tuple[float, float]:
    """The order of epochs by their validation frames, the best one first.

    Loss decides between equal accuracies, which a few dozen frames often give.
    """
    loss = math.inf if result.validation_loss is None else result.validation_loss
    return -(result.validation or 0.0), loss


def rate_share(step: int, total: int, *, cosine: bool) -> float:
    """The share of the rates at `step` (from 0) of `total`: 1, or warm-up and half a cosine."""
    if not cosine:
        return 1.0
    warm_up = max(1, round(WARM_UP_SHARE * total))
    if step < warm_up:
        return (step + 1) / warm_up
    return 0.5 * (1 + math.cos(math.pi * (step - warm_up) / max(total - warm_up, 1)))


def restore(variables: Sequence[tf.Variable], values: Sequence[NDArray[Any]]) -> None:
    for variable, value in zip(variables, values):
        variable.assign(value)
