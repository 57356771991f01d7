"""The transform of closed forms with its gradient, for a trunk that trains below one."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from lrtflite_converters.gradients.window import Tensor
from lrtflite_converters.heads.class_sums import LEAST, transform


def transform_pullback(features: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Return z of features (B, F), and a function from its gradient to that of the features.

    With root = x / sqrt(|x|) and z = root / |root|: droot = (dz - z (z . dz)) / |root|, and
    dx = droot / (2 sqrt(|x|)).
    """
    z = transform(features)

    def pull(dz: Tensor) -> Tensor:
        size = tf.maximum(tf.abs(features), LEAST)
        length = tf.sqrt(tf.reduce_sum(tf.abs(features), axis=-1, keepdims=True))
        across = dz - z * tf.reduce_sum(z * dz, axis=-1, keepdims=True)
        return across / (2.0 * tf.sqrt(size) * tf.maximum(length, LEAST))

    return z, pull
