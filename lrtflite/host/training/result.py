"""The outcome of a training run."""

from __future__ import annotations

from dataclasses import dataclass

import tf_keras as keras

from lrtflite.host.training.checkpoint import Epoch


@dataclass(frozen=True)
class TrainResult:
    """A trained model, which is also saved on disk, and the figures of its training run.

    Attributes:
        model: the network with the weights of epoch `best_epoch`.
        labels: class name of each slot.
        counts: training frames of each slot.
        history: one entry for each epoch that ran.
        best_epoch: epoch (from 1) with the best validation accuracy; without early stopping, the
            last one.
        stopped_early: True if early stopping ended the run before its last epoch.
        weights: description of the weights that training started from.
        freeze_below: layer whose output was frozen, with all layers below it.
        train_accuracy: share of the training frames that `model` classifies correctly.
        held_out_frames: number of held-out frames.
        validation_frames: number of frames set aside for early stopping.
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
        """The accuracy of `model` on held-out frames; NaN without such frames."""
        return self.history[self.best_epoch - 1].held_out
