"""Delay a computation in a graph until another one is done."""

from __future__ import annotations

import tensorflow as tf

from lrtflite_converters.gradients.window import Tensor


def after(vector: Tensor, *triggers: Tensor, apart: bool = False) -> Tensor:
    """Return `vector`, which cannot be used before the triggers are computed.

    The backward pass computes values of the forward pass again, because keeping them needs too much
    memory. But a converter merges equal expressions, and a runtime computes everything as early as
    possible. To prevent both, this adds zeros that depend on the triggers.

    A delegate keeps the inputs and outputs of its part of the graph until all of that part is done.
    `apart` ends such a part with a cast to integers, which delegates leave to the runtime.
    """
    for trigger in triggers:
        rank = len(trigger.shape)
        zero = _zero(tf.reshape(tf.slice(trigger, [0] * rank, [1] * rank), [1]))
        if apart:
            zero = _zero(tf.cast(tf.cast(zero, tf.int32), tf.float32))
        vector = vector + zero
    return vector


def _zero(x: Tensor) -> Tensor:
    return tf.minimum(tf.maximum(x, 0.0), 0.0)
