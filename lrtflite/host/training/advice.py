"""Warnings about the outcome of a training run, and the next thing to do."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass
from pathlib import Path

from lrtflite.data import FrameSource
from lrtflite.host.training.options import TrainOptions
from lrtflite.host.training.result import TrainResult
from lrtflite.networks.architecture import NETWORKS
from lrtflite.networks.demo import DEMO_NOTE, photographs_on_demo

# Smallest gap between training and held-out accuracy that counts as overfitting. With fewer than
# 100 held-out frames the gap must be larger, because their accuracy varies more by chance.
OVERFITTING_GAP = 0.1
# Held-out accuracy below which a network is not worth shipping.
LOW_ACCURACY = 0.7


@dataclass(frozen=True)
class Advice:
    """`warnings`, one line each, and `next`, the step to take after training."""

    warnings: tuple[str, ...]
    next: str


def advise(result: TrainResult, source: FrameSource, options: TrainOptions, *, out: Path) -> Advice:
    """Return warnings about `result`, and the next step for the user of model `out`."""
    warnings = []
    wrong_weights = photographs_on_demo(options.weights, source.name)
    if wrong_weights:
        warnings.append(DEMO_NOTE)
    if options.patience is not None and not result.validation_frames:
        warnings.append(
            "Every class has too few frames to set some aside for early stopping, so all "
            f"{options.epochs} epochs ran; add pictures"
        )
    remedy = (
        "run this again with --weights imagenet --replace" if wrong_weights else _remedy(options)
    )
    overfits, low = falls_behind(result), result.held_out < LOW_ACCURACY
    if overfits:
        warnings.append(
            f"Held-out accuracy ({result.held_out:.1%}) is clearly behind training accuracy "
            f"({result.train_accuracy:.1%}), so the network overfits; {remedy}"
        )
    elif low:
        warnings.append(f"Held-out accuracy ({result.held_out:.1%}) is low; {remedy}")
    folder = out.with_name(f"{out.stem}-trained")
    convert = shlex.join(["lrtflite", "convert", "--model", str(out), "--out", str(folder)])
    if options.network != next(iter(NETWORKS)):
        convert += f" --network {options.network}"
    if overfits or low:
        return Advice(tuple(warnings), f"{remedy}; to use the model as it is: {convert}")
    return Advice(tuple(warnings), convert)


def falls_behind(result: TrainResult) -> bool:
    """Return True if held-out accuracy is clearly below training accuracy.

    The standard error of an accuracy on n frames is at most 0.5 / sqrt(n); the gap must exceed
    twice that.
    """
    if math.isnan(result.held_out):
        return False
    gap = max(OVERFITTING_GAP, 1 / math.sqrt(result.held_out_frames))
    return result.train_accuracy - result.held_out > gap


def _remedy(options: TrainOptions) -> str:
    if options.weights == "none":
        return "start from trained weights (--weights imagenet), or add pictures of each class"
    layers, default = options.architecture.replay_layers, options.architecture.freeze_below
    if default and layers.index(options.freeze_below) < layers.index(default):
        return f"train fewer layers (--freeze-below {default}), or add pictures of each class"
    return "add pictures of each class, from other angles and in other light"
