"""The advice of `train` for outcomes worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import tf_keras as keras

from coloured_source import ColouredSource
from lrtflite.host.training import FIRST_BATCH, TrainOptions, TrainResult
from lrtflite.host.training.advice import Advice, advise, falls_behind
from lrtflite.host.training.checkpoint import Epoch
from lrtflite.networks.demo import DEMO_NOTE, photographs_on_demo

IMAGENET = replace(FIRST_BATCH, weights="imagenet")
CONVERT = "lrtflite convert --model 'my things.keras' --out 'my things-trained'"


def outcome(
    train: float, held_out: float, *, frames: int = 150, validation: int = 9
) -> TrainResult:
    return TrainResult(
        model=keras.Sequential(),
        labels=("a", "b"),
        counts=(9, 9),
        # The saved model is the first epoch's, not the last one's.
        history=(Epoch(1, 0.1, 0.0, held_out, 0.9), Epoch(2, 0.1, 1.0, 0.0, 0.8)),
        best_epoch=1,
        stopped_early=True,
        weights="somewhere",
        freeze_below="conv6/dw",
        train_accuracy=train,
        held_out_frames=frames,
        validation_frames=validation,
    )


def said(result: TrainResult, options: TrainOptions = IMAGENET) -> Advice:
    return advise(result, ColouredSource(), options, out=Path("my things.keras"))


def test_a_good_outcome_needs_no_warning() -> None:
    assert said(outcome(1.0, 0.95)) == Advice((), CONVERT)
    assert said(outcome(1.0, float("nan"), frames=0)) == Advice((), CONVERT)


@pytest.mark.parametrize(
    ("train", "held_out", "frames", "behind"),
    [
        (1.0, 0.91, 10_000, False),  # a tenth is the least
        (1.0, 0.89, 10_000, True),
        (1.0, 0.70, 9, False),  # three of nine frames may be chance
        (1.0, 0.60, 9, True),
        (0.5, 0.45, 10_000, False),  # low, but not behind
    ],
)
def test_clearly_behind(train: float, held_out: float, frames: int, behind: bool) -> None:
    assert falls_behind(outcome(train, held_out, frames=frames)) is behind


def test_overfitting_is_a_warning_with_a_remedy() -> None:
    overfitted = outcome(0.99, 0.82)
    advice = said(overfitted)
    [warning] = advice.warnings
    assert "Held-out accuracy (82.0%) is clearly behind training accuracy (99.0%)" in warning
    assert "overfits; add pictures of each class" in warning
    assert advice.next.startswith("add pictures of each class")
    assert advice.next.endswith(CONVERT)
    # Fewer layers help where more than the default train.
    assert said(overfitted, replace(IMAGENET, freeze_below="conv5_6/sep")).next.startswith(
        "train fewer layers (--freeze-below conv6/dw), or add"
    )
    assert "--freeze" not in said(overfitted, replace(IMAGENET, freeze_below="pool6")).next
    from_nothing = replace(IMAGENET, weights="none", freeze_below="images")
    assert said(overfitted, from_nothing).next.startswith("start from trained weights")


def test_low_accuracy_is_a_warning() -> None:
    [warning] = said(outcome(0.6, 0.55)).warnings
    assert warning.startswith("Held-out accuracy (55.0%) is low; add pictures")
    assert said(outcome(0.75, 0.71)).warnings == ()


def test_demo_weights_on_photographs() -> None:
    good, bad = said(outcome(1.0, 0.95), FIRST_BATCH), said(outcome(0.9, 0.36), FIRST_BATCH)
    assert good == Advice((DEMO_NOTE,), CONVERT)
    assert bad.warnings[0] == DEMO_NOTE
    assert bad.warnings[1].endswith(
        "so the network overfits; run this again with --weights imagenet --replace"
    )
    assert bad.next == (
        f"run this again with --weights imagenet --replace; to use the model as it is: {CONVERT}"
    )
    assert photographs_on_demo("demo", "folder:things")
    assert not photographs_on_demo("demo", "synthetic")
    assert not photographs_on_demo("demo", "synthetic-backbone")
    assert not photographs_on_demo("demo.npz", "folder:things")


def test_no_early_stopping_without_validation_frames() -> None:
    [warning] = said(outcome(1.0, 0.95, validation=0)).warnings
    assert "all 40 epochs ran" in warning
    switched_off = replace(IMAGENET, patience=None)
    assert said(outcome(1.0, 0.95, validation=0), switched_off).warnings == ()
