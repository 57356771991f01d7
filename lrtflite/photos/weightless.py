"""Int8 feature models without their kernels, and the kernels put back from published weights.

Almost all bytes of an int8 model are kernels, which follow from the network's weights: Batch Norm
is folded into them, and each output channel is divided by its scale and rounded. Scales, biases,
ranges and the graph stay in the model, so that a small file and the published weights make the
model that the converter wrote, bit for bit. Places of kernels and scales are bytes of the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrtflite.errors import BundleError
from lrtflite.photos.batch_norm_folding import (
    EPSILON,
    PUBLISHED_EPSILON,
    folded_kernel,
    folding_factors,
    with_epsilon,
)

Arrays = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class KernelPlace:
    """The kernel of a unit in a model: the places of its int8 values and of its float32 scales."""

    unit: str
    values: int
    scales: int


def int8_kernel(arrays: Arrays, unit: str, scales: NDArray[np.float32]) -> NDArray[np.int8]:
    """Return a kernel as TFLite holds it: (outputs, h, w, inputs), or (1, h, w, channels).

    `arrays` are the weights of the published network. The arithmetic is that of the converter:
    float32 products with 1 / scale, and halves rounded away from zero.
    """
    depthwise = unit.endswith("/dw")
    kernel = arrays[f"{unit}/conv/{'depthwise_kernel' if depthwise else 'kernel'}"]
    variance = arrays[f"{unit}/brn/moving_variance"]
    factors = folding_factors(
        with_epsilon(variance, PUBLISHED_EPSILON, EPSILON), arrays[f"{unit}/brn/gamma"], EPSILON
    )
    folded = folded_kernel(kernel, factors, depthwise=depthwise)
    ordered = folded.transpose(3, 0, 1, 2)
    inverse = np.float32(1) / scales
    steps = ordered * (inverse if depthwise else inverse.reshape(-1, 1, 1, 1))
    rounded = np.copysign(np.floor(np.abs(steps) + np.float32(0.5)), steps)
    return np.ascontiguousarray(np.clip(rounded, -127, 127), np.int8)


def fill(model: bytearray, places: Sequence[KernelPlace], arrays: Arrays) -> None:
    """Put the kernels into a model that has zeros in their places."""
    for place in places:
        outputs = arrays[f"{place.unit}/brn/gamma"].size
        scales = scales_at(model, place.scales, outputs)
        with np.errstate(all="ignore"):  # overflow changes the digest
            values = int8_kernel(arrays, place.unit, scales).tobytes()
        room = memoryview(model)[place.values : place.values + len(values)]
        if len(room) != len(values) or any(room):
            raise BundleError(
                f"Expected room for the kernel of {place.unit} in a packaged model, got other "
                "values",
                "install lrtflite again",
            )
        room[:] = values


def scales_at(model: bytes | bytearray, start: int, count: int) -> NDArray[np.float32]:
    """Return the scales at a place of a model."""
    if not 0 <= start <= len(model) - 4 * count:
        raise BundleError(
            f"Expected {count} scales in a packaged model, got {len(model)} bytes",
            "install lrtflite again",
        )
    return np.frombuffer(model, "<f4", count, start).astype(np.float32)
