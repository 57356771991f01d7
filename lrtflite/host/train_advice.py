"""The outcome of a host training in words: what to beware of, and what to do next."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass
from pathlib import Path

from lrtflite.data import FrameSource
from lrtflite.demo_weights import DEMO_NOTE, photographs_on_demo
from lrtflite.host.train_options import TrainOptions
from lrtflite.host.training import TrainResult
from lrtflite.manifest import trains_trunk

# Share of frames by which held-out accuracy has to fall behind training accuracy to be clearly
# behind. Of fewer than a hundred held-out frames it is more: their own chance error.
CLEAR_GAP = 0.1
# Held-out accuracy below which a network is not worth shipping.
LOW = 0.7


@dataclass(frozen=True)
class Advice:
    """`warnings`, one line each, and `next`, what to do with the model or instead of it."""

    warnings: tuple[str, ...]
    next: str


def advise(result: TrainResult, source: FrameSource, options: TrainOptions, *, out: Path) -> Advice:
    """Return what the user of model `out` should know and do."""
    warnings = []
    wrong_weights = photographs_on_demo(options.weights, source.name)
    if wrong_weights:
        warnings.append(DEMO_NOTE)
    if options.patience is not None and not result.validation_frames:
        warnings.append(
            f"No class has frames to spare for early stopping, so all {options.epochs} epochs ran; "
            "add pictures"
        )
    behind, low = falls_behind(result), result.held_out < LOW
    if behind:
        warnings.append(
            f"Held-out accuracy ({result.held_out:.1%}) is clearly behind training accuracy "
            f"({result.train_accuracy:.1%}), so the network overfits; {_cure(options)}"
        )
    elif low:
        warnings.append(f"Held-out accuracy ({result.held_out:.1%}) is low; {_cure(options)}")
    folder = out.with_name(f"{out.stem}-bundle")
    convert = f"lrtflite convert --model {shlex.quote(str(out))} --out {shlex.quote(str(folder))}"
    if not (behind or low):
        return Advice(tuple(warnings), convert)
    cure = "run this again with --weights imagenet" if wrong_weights else _cure(options)
    return Advice(tuple(warnings), f"{cure}; to take the model as it is: {convert}")


def falls_behind(result: TrainResult) -> bool:
    """Whether the saved model knows clearly more of the training frames than of the held-out ones.

    The standard error of a share of n frames is at most 0.5 / sqrt(n); the gap has to be twice it.
    """
    if math.isnan(result.held_out):
        return False
    clear = max(CLEAR_GAP, 1 / math.sqrt(result.held_out_frames))
    return result.train_accuracy - result.held_out > clear


def _cure(options: TrainOptions) -> str:
    if options.weights == "none":
        return "add pictures of each class, or start from trained weights (--weights imagenet)"
    if trains_trunk(options.freeze_below):
        return "add pictures of each class, or train fewer layers with --freeze-below pool6"
    return "add pictures of each class, from other sides and in other light"
