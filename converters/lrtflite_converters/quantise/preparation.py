"""The network that a mode of quantisation prepares, and what it may use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tf_keras as keras
from numpy.typing import NDArray

from lrtflite_converters.quantise.folding import CONVOLUTIONS
from lrtflite_converters.quantise.scaling import FrameScaling

layers = keras.layers
# Largest int8 weight; its negative is the smallest one.
LARGEST_WEIGHT = 127


@dataclass(frozen=True)
class Preparation:
    """A folded network, whose weights a mode may change, and the scaled frames to do it with.

    `scale` turns frames into inputs of the network, and `scaling` is its form in the int8 model.
    `stage` is called with each step.
    """

    model: keras.Model
    frames: NDArray[np.uint8]
    scale: Callable[[Any], Any]
    scaling: FrameScaling
    epochs: int
    stage: Callable[[str], None]

    @property
    def convolutions(self) -> list[Any]:
        """Return the layers whose weights become int8, in network order."""
        return [layer for layer in self.model.layers if type(layer) in CONVOLUTIONS]


def rounded_kernel(layer: Any) -> NDArray[np.float32]:
    """Return the kernel as int8 can hold it, with one scale for each output channel."""
    kernel = layer.get_weights()[0]
    axes = (0, 1) if isinstance(layer, layers.DepthwiseConv2D) else (0, 1, 2)
    step = np.abs(kernel).max(axis=axes, keepdims=True) / LARGEST_WEIGHT
    step = np.where(step > 0, step, 1)
    return np.asarray(np.round(kernel / step) * step, np.float32)
