"""Batch Renorm's limits over a training: plain Batch Norm first, then ever more freedom."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import tf_keras as keras

from lrtflite.host.batch_renorm import BatchRenorm


@dataclass(frozen=True)
class RenormLimits:
    """`r_max`, `d_max` and moment rate of every BatchRenorm of a model."""

    r_max: float
    d_max: float
    momentum: float


# Table "renormpar" of the paper.
LATENT_REPLAY = RenormLimits(r_max=1.25, d_max=0.5, momentum=0.99995)

RAMP_START, RAMP_END = 48, 96
RAMP_TOP = RenormLimits(r_max=3.0, d_max=5.0, momentum=0.99)


def first_batch_limits(step: int) -> RenormLimits:
    """The limits of the first batch's `step` (from 0), as in the authors' training.

    Plain Batch Norm up to step 48, then both limits grow linearly to 3 and 5 at step 96.
    """
    share = min(max((step - RAMP_START) / (RAMP_END - RAMP_START), 0.0), 1.0)
    return RenormLimits(
        r_max=1.0 + share * (RAMP_TOP.r_max - 1.0),
        d_max=share * RAMP_TOP.d_max,
        momentum=RAMP_TOP.momentum,
    )


def backbone_limits(step: int) -> RenormLimits:
    """Plain Batch Norm, with moments that forget their arbitrary start over the first steps."""
    return RenormLimits(r_max=1.0, d_max=0.0, momentum=min(0.99, (1 + step) / (10 + step)))


def set_limits(model: keras.Model, limits: RenormLimits) -> None:
    """Give every BatchRenorm of `model` these limits."""
    for layer in model.layers:
        if isinstance(layer, BatchRenorm):
            layer.set_limits(**asdict(limits))
