"""Early stopping: the epoch that is kept, the end of training, and the frames it needs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import tensorflow as tf
from numpy.typing import NDArray

from coloured_source import ColouredSource
from lrtflite.host.mobilenet import scale_frames
from lrtflite.host.model_file import load_model
from lrtflite.host.training import BACKBONE, FIRST_BATCH, train
from lrtflite.host.training.checkpoint import TrainState
from lrtflite.host.training.data import Frames, TrainData, read_frames, select
from lrtflite.host.training.loop import EpochLoop
from lrtflite.host.training.sgd import SgdTrainer
from train_stop import Stop

VALIDATION = Frames(np.zeros((5, 1, 1, 3), np.uint8), np.zeros(5, np.int64))


class Scripted:
    """A trainer whose one weight counts its steps, and whose validation results are given."""

    def __init__(self, results: list[float]) -> None:
        self.weight = tf.Variable(0.0)
        self.model = SimpleNamespace(weights=[self.weight], layers=[])
        self.velocities: tuple[Any, ...] = ()
        self._results = results

    def step(self, frames: object, slots: object, **rates: float) -> tuple[float, int]:
        self.weight.assign_add(1.0)
        return 0.0, 0

    def accuracy(self, frames: NDArray[Any], slots: NDArray[Any], *, batch_size: int) -> float:
        if len(frames) == len(VALIDATION):
            return self._results[int(self.weight) - 1]
        return 0.0


def run(results: list[float], *, patience: int, path: Path) -> TrainState:
    """Run epochs of one step each, and return the final state."""
    train_frames = Frames(np.zeros((2, 1, 1, 3), np.uint8), np.zeros(2, np.int64))
    data = TrainData(train_frames, VALIDATION, train_frames)
    options = replace(BACKBONE, epochs=len(results), patience=patience, augment=False)
    state, observer = TrainState(), Stop()
    loop = EpochLoop(cast(SgdTrainer, Scripted(results)), data, options, state)
    list(loop.run(observer, observer.cancel, path / "checkpoint.npz"))
    return state


@pytest.mark.parametrize(
    ("results", "patience", "kept", "ran"),
    [
        ([0.2, 0.6, 0.4, 0.4, 0.4], 2, 2, 4),
        ([0.2, 0.6, 0.6, 0.4, 0.4, 0.9], 2, 3, 5),  # the latest of equals
        ([0.2, 0.1, 0.3, 0.2, 0.4], 2, 5, 5),  # a new best starts again
        ([0.9, 0.8, 0.8, 0.8, 0.8], 9, 1, 5),  # patience to the end
    ],
)
def test_the_best_epoch_is_kept(
    tmp_path: Path, results: list[float], patience: int, kept: int, ran: int
) -> None:
    state = run(results, patience=patience, path=tmp_path)
    assert (state.best_epoch + 1, state.epoch) == (kept, ran)
    assert [float(weight) for weight in state.best] == [kept]  # weights, as they were then


@pytest.mark.usefixtures("shallow", "eager")
def test_the_saved_model_is_the_best_epochs(tmp_path: Path) -> None:
    """With a rate that soon ruins the network, the saved model still matches the best epoch."""
    source = ColouredSource(clips=1, frames=20)
    options = replace(BACKBONE, batch_size=8, lr=1.0, cosine=False, epochs=9, patience=3)
    result = train(source, tmp_path / "model.keras", options)
    data = read_frames(select(source, options), size=source.size, on_progress=lambda _: None)
    logits = load_model(tmp_path / "model.keras")(scale_frames(data.validation.images)).numpy()
    accuracy = float((logits.argmax(axis=1) == data.validation.slots).mean())
    found = [epoch.validation for epoch in result.history]
    assert accuracy == found[result.best_epoch - 1] == max(cast(list[float], found))
    assert result.validation_frames == len(data.validation) == 8
    assert result.counts == (18, 18, 18, 18)


@pytest.mark.usefixtures("shallow", "eager")
def test_too_few_frames_to_validate_train_all_epochs(tmp_path: Path) -> None:
    options = replace(
        FIRST_BATCH,
        weights="none",
        alpha=0.25,
        freeze_below="images",
        first_classes=None,
        epochs=4,
        patience=1,
        lr=0.0,
        lower_lr=0.0,
    )
    result = train(ColouredSource(clips=1, frames=3), tmp_path / "model.keras", options)
    assert (len(result.history), result.best_epoch, result.stopped_early) == (4, 4, False)
    assert result.counts == (3, 3, 3, 3)
    assert result.validation_frames == 0
    assert {epoch.validation for epoch in result.history} == {None}
