"""Fold Batch Norm into the convolution below it, in numpy.

gamma (conv(x) - mean) / sqrt(variance + epsilon) + beta is a convolution with another kernel and a
bias. The host folds networks that it quantises; a device folds the weights of a packaged bundle.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Epsilon of published networks, and of the Batch Renorm of this project's networks.
PUBLISHED_EPSILON, EPSILON = 1e-3, 1e-5


def with_epsilon(variance: NDArray[np.float32], found: float, epsilon: float) -> NDArray[Any]:
    """Return the variance that has the same effect with another epsilon."""
    return np.asarray(variance.astype(np.float64) + found - epsilon, np.float32)


def folding_factors(
    variance: NDArray[np.float32], gamma: NDArray[np.float32] | None, epsilon: float
) -> NDArray[np.float64]:
    """Return the factor (C,) of each output channel."""
    factors = 1.0 / np.sqrt(np.asarray(variance, np.float64) + epsilon)
    return np.asarray(factors if gamma is None else factors * gamma)


def folded_kernel(
    kernel: NDArray[np.float32], factors: NDArray[np.float64], *, depthwise: bool
) -> NDArray[np.float32]:
    """Return a kernel times the factor of each output.

    Kernels are (h, w, inputs, outputs), or (h, w, channels, multiplier) if `depthwise`, whose
    outputs are channel by channel.
    """
    per_output = factors.reshape(kernel.shape[2:]) if depthwise else factors
    return np.asarray(np.asarray(kernel, np.float64) * per_output, np.float32)
