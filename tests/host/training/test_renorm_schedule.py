"""The first batch's Batch Renorm schedule."""

from __future__ import annotations

import pytest
import tf_keras as keras

from lrtflite.host.batch_renorm import BatchRenorm
from lrtflite.host.training.renorm_schedule import (
    LATENT_REPLAY,
    backbone_limits,
    first_batch_limits,
    set_limits,
)


@pytest.mark.parametrize(
    ("step", "r_max", "d_max"),
    [(0, 1.0, 0.0), (48, 1.0, 0.0), (60, 1.5, 1.25), (72, 2.0, 2.5), (96, 3.0, 5.0), (500, 3.0, 5)],
)
def test_limits_ramp_from_step_48_to_96(step: int, r_max: float, d_max: float) -> None:
    limits = first_batch_limits(step)
    assert (limits.r_max, limits.d_max, limits.momentum) == (r_max, d_max, 0.99)


def test_backbone_moments_forget_their_start() -> None:
    assert backbone_limits(0).momentum == 0.1
    assert backbone_limits(9).momentum == 10 / 19
    assert backbone_limits(5000).momentum == 0.99
    assert (backbone_limits(7).r_max, backbone_limits(7).d_max) == (1.0, 0.0)


def test_constants_are_the_papers() -> None:
    assert (LATENT_REPLAY.r_max, LATENT_REPLAY.d_max, LATENT_REPLAY.momentum) == (
        1.25,
        0.5,
        0.99995,
    )


def test_set_limits_reaches_every_layer() -> None:
    inputs = keras.Input((2,))
    model = keras.Model(inputs, BatchRenorm()(BatchRenorm()(inputs)))
    set_limits(model, LATENT_REPLAY)
    assert [layer.limits()["momentum"] for layer in model.layers[1:]] == [0.99995, 0.99995]
