"""Batch Renorm's limits during training: plain Batch Norm first, then limits that grow."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import tf_keras as keras

from lrtflite.host.batch_renorm import BatchRenorm


@dataclass(frozen=True)
class RenormLimits:
    """`r_max`, `d_max` and moment momentum of every BatchRenorm of a model."""

    r_max: float
    d_max: float
    momentum: float


# Limits for latent replay: table "renormpar" of the paper.
LATENT_REPLAY = RenormLimits(r_max=1.25, d_max=0.5, momentum=0.99995)

# Steps between which the limits of the first batch grow, and the limits they reach.
RAMP_START_STEP, RAMP_END_STEP = 48, 96
RAMP_TOP = RenormLimits(r_max=3.0, d_max=5.0, momentum=0.99)


def first_batch_limits(step: int) -> RenormLimits:
    """Return the limits at `step` (from 0) of the first batch, as the paper's authors train it.

    Plain Batch Norm up to step 48, then both limits grow linearly to 3 and 5 at step 96.
    """
    share = min(max((step - RAMP_START_STEP) / (RAMP_END_STEP - RAMP_START_STEP), 0.0), 1.0)
    return RenormLimits(
        r_max=1.0 + share * (RAMP_TOP.r_max - 1.0),
        d_max=share * RAMP_TOP.d_max,
        momentum=RAMP_TOP.momentum,
    )


def backbone_limits(step: int) -> RenormLimits:
    """Return plain Batch Norm, with a momentum that grows so that the initial moments fade."""
    return RenormLimits(r_max=1.0, d_max=0.0, momentum=min(0.99, (1 + step) / (10 + step)))


def set_limits(model: keras.Model, limits: RenormLimits) -> None:
    """Set the limits of every BatchRenorm layer of `model`."""
    for layer in model.layers:
        if isinstance(layer, BatchRenorm):
            layer.set_limits(**asdict(limits))
