"""Average the latents of two views of a frame: the whole frame, and its centre enlarged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from lrtflite_converters.gradients.window import Tensor

# Side of the centre crop, relative to the side of the frame (docs/studies/closed-form.md).
CROP = 0.8


def latents_of(below: Callable[..., Any], x: Tensor, *, crops: bool) -> Tensor:
    """Return the latents that the layers `below` give for inputs (n, S, S, 3).

    With `crops`, each latent (F) is the mean of those of the whole frame and of its centre.
    """
    if not crops:
        return below(x, training=False)
    both = below(tf.concat([x, centre(x)], axis=0), training=False)
    return tf.reduce_mean(tf.reshape(both, [2, -1, int(both.shape[-1])]), axis=0)


def centre(x: Tensor) -> Tensor:
    """Return the centre squares of (n, S, S, 3), CROP of the side, enlarged to S by S."""
    size = int(x.shape[1])
    side = round(CROP * size)
    start = (size - side) // 2
    square = x[:, start : start + side, start : start + side, :]
    return tf.image.resize(square, (size, size))
