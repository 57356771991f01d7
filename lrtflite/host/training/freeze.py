"""Frozen layers, and the latents they compute once per training run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tf_keras as keras
from numpy.typing import NDArray

from lrtflite.host.mobilenet import scale_frames
from lrtflite.host.training.streamed import StreamedFrames

# Frames passed to the frozen layers at a time.
FRAMES_PER_CALL = 64
# Maximum size of the latents kept in memory, in bytes; above this the frozen layers run in every
# epoch.
MAX_LATENT_BYTES = 1 << 30


def freeze(model: keras.Model, layer: str) -> None:
    """Freeze `layer` and all layers below it, with their Batch Renorm moments."""
    names = [each.name for each in model.layers]
    for each in model.layers[: names.index(layer) + 1]:
        each.trainable = False


def unfreeze(model: keras.Model) -> None:
    """Make every layer trainable again, so that the saved model has no frozen layer."""
    for each in model.layers:
        each.trainable = True


def split(model: keras.Model, layer: str) -> tuple[keras.Model, keras.Model]:
    """Return the layers up to `layer` and those above it; both share their weights with `model`."""
    middle = model.get_layer(layer).output
    return keras.Model(model.input, middle), keras.Model(middle, model.output)


def fits(model: keras.Model, layer: str, frames: int) -> bool:
    """Return True if the latents of `frames` frames may be kept in memory."""
    shape = model.get_layer(layer).output.shape[1:]
    return frames * 4 * int(np.prod(shape)) <= MAX_LATENT_BYTES


def extract(
    below: keras.Model,
    frames: NDArray[Any] | StreamedFrames,
    on_frames: Callable[[int], None],
    *,
    scale: Callable[[Any], Any] = scale_frames,
) -> NDArray[np.float32]:
    """Return the latents `(N, ...)` float32 of `(N, S, S, 3)` uint8 frames.

    Call `on_frames(n)` after each group of n frames. `scale` turns frames into inputs.
    """
    latents = np.empty((len(frames), *below.output_shape[1:]), np.float32)
    for start in range(0, len(frames), FRAMES_PER_CALL):
        chunk = frames[start : start + FRAMES_PER_CALL]
        latents[start : start + len(chunk)] = below(scale(chunk), training=False)
        on_frames(len(chunk))
    return latents
