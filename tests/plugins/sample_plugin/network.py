"""A network of two units, with random weights."""

from __future__ import annotations

import tensorflow as tf
import tf_keras as keras

from lrtflite.host.batch_renorm import BatchRenorm
from lrtflite.host.network import Network
from sample_plugin.network_names import TWO_UNITS


def build(*, weights: str, alpha: float | None, input_size: int) -> Network:
    """Build the network with the relative width `alpha`."""
    keras.utils.set_random_seed(0)
    x = images = keras.Input((input_size, input_size, 3), name="frames")
    for name, filters in (("first", 8), ("second", 32)):
        x = keras.layers.Conv2D(int(filters * (alpha or 1)), 3, 2, "same", use_bias=False)(x)
        x = keras.layers.ReLU(6.0, name=name)(BatchRenorm()(x))
    x = keras.layers.GlobalAveragePooling2D(name="pooled")(x)
    model = keras.Model(images, x, name="two-units")
    return Network(TWO_UNITS, model, lambda frames: tf.cast(frames, tf.float32) / 64.0, "random")
