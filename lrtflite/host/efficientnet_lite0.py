"""EfficientNet-Lite0 with Batch Renorm."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras as keras

from lrtflite.host.inverted_residuals import inverted_residuals
from lrtflite.networks.architecture import RELU6
from lrtflite.networks.efficientnet_lite0 import CONV1_FILTERS, LAST_FILTERS, blocks


def scale_frames(frames: Any) -> tf.Tensor:
    """Scale frames `(N, H, W, 3)`, RGB from 0 to 255, to float32 around 0, as its authors do."""
    return (tf.cast(frames, tf.float32) - 127.0) / 128.0


def efficientnet_lite0(
    *,
    alpha: float = 1.0,
    input_size: int = 128,
    classes: int = 50,
    activation: str = RELU6,
) -> keras.Model:
    """Build EfficientNet-Lite0, from scaled frames to logits; see `inverted_residuals`.

    Its weights are published at `alpha` 1.0 only.
    """
    return inverted_residuals(
        "efficientnet_lite0",
        blocks(alpha),
        first=CONV1_FILTERS,
        last=LAST_FILTERS,
        alpha=alpha,
        input_size=input_size,
        classes=classes,
        activation=activation,
    )
