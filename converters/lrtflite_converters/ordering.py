"""Put off a computation in a graph until something else is there."""

from __future__ import annotations

import tensorflow as tf

from lrtflite_converters.window import Tensor


def after(vector: Tensor, *triggers: Tensor, apart: bool = False) -> Tensor:
    """`vector`, not to be used before the triggers are there.

    What the backward pass needs of the forward one is cheaper to compute again than to keep, but
    a converter merges equal expressions, and a runtime computes what it can as early as it can.
    This adds zeros that only the triggers give.

    A delegate keeps what goes into and out of one of its parts of the graph until all of that part
    is done. `apart` ends such a part: delegates leave it to the runtime to make integers.
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
