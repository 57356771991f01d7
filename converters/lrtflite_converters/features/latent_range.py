"""The smallest and the largest possible value in the output of a replay layer."""

from __future__ import annotations

import math

import numpy as np
import tf_keras as keras

from lrtflite.host.batch_renorm import BatchRenorm
from lrtflite.host.network import Network
from lrtflite_converters.blocks.split import maker
from lrtflite_converters.features.sample_frames import wave_frames

# Maximum number of standard deviations assumed for a normalised value. The largest value measured
# was 39: ImageNet weights with ReLU instead of ReLU6, on photographs, noise and checkerboards.
MAX_DEVIATIONS = 64
# Limit for unknown kinds of layers, far above the latents of any trained network.
UNKNOWN = 1e4


# Layers whose values lie between those of their input.
PASSING = (
    keras.layers.AveragePooling2D,
    keras.layers.Flatten,
    keras.layers.GlobalAveragePooling2D,
    keras.layers.GlobalMaxPooling2D,
    keras.layers.MaxPooling2D,
    keras.layers.Reshape,
)


def latent_range(
    network: Network, replay_layer: str, *, second: str | None = None
) -> tuple[float, float]:
    """Return the limits of a latent: 0 to 6 after ReLU6; those of both layers if there are two.

    A plain ReLU has no upper limit, and Batch Renorm without an activation has neither limit, so
    normalised values are assumed to be within MAX_DEVIATIONS. Values of other layers may be
    MAX_DEVIATIONS times the largest that some frames give.
    """
    if second is not None:
        limits = [latent_range(network, layer) for layer in (replay_layer, second)]
        return min(low for low, _ in limits), max(high for _, high in limits)
    if network.architecture.reads_frames(replay_layer):
        return 0.0, 255.0
    layer = network.layer(replay_layer)
    while isinstance(layer, PASSING):
        layer = maker(layer.input)
    lowest = -math.inf
    if isinstance(layer, keras.layers.ReLU):
        lowest = 0.0
        if layer.max_value is not None:
            return 0.0, float(layer.max_value)
        layer = maker(layer.input)
    if not isinstance(layer, BatchRenorm):
        highest = max(UNKNOWN, MAX_DEVIATIONS * _largest(network, replay_layer))
        return max(lowest, -highest), highest
    gamma, beta = layer.gamma.numpy(), layer.beta.numpy()
    spread = MAX_DEVIATIONS * np.abs(gamma)
    if lowest < 0:
        lowest = float(np.min(beta - spread))
    return lowest, float(np.max(beta + spread))


def _largest(network: Network, layer: str) -> float:
    """Return the largest absolute value that a few frames give at a layer."""
    frames = wave_frames(4, network.input_size, np.random.default_rng(0))
    below = keras.Model(network.model.input, network.output(layer))
    return float(np.abs(below(network.scale(frames)).numpy()).max())
