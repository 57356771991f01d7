"""MobileNetV2 with Batch Renorm."""

from __future__ import annotations

import tf_keras as keras

from lrtflite.host.inverted_residuals import inverted_residuals
from lrtflite.networks.architecture import RELU6
from lrtflite.networks.mobilenet_v2 import blocks, first_width, last_width


def mobilenet_v2(
    *,
    alpha: float = 1.0,
    input_size: int = 128,
    classes: int = 50,
    activation: str = RELU6,
) -> keras.Model:
    """Build MobileNetV2, from frames of `scale_frames` to logits; see `inverted_residuals`.

    Numbers of filters at width `alpha` are rounded as in keras.applications.
    """
    return inverted_residuals(
        "mobilenet_v2",
        blocks(alpha),
        first=first_width(alpha),
        last=last_width(alpha),
        alpha=alpha,
        input_size=input_size,
        classes=classes,
        activation=activation,
    )
