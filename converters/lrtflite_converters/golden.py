"""Golden vectors: inputs of a golden session, and what TensorFlow makes of them.

`lrtflite.golden` has the session itself, for TensorFlow and for every client alike. The first
session has one class, so the trunk rests; the second meets that class and new ones.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras as keras
from numpy.typing import NDArray

from lrtflite.contract import ZERO
from lrtflite.errors import ConversionError, ModelError
from lrtflite.golden import SCALARS, Arrays, run_golden
from lrtflite.host.network import Network
from lrtflite.training import Training
from lrtflite_converters.features import Features
from lrtflite_converters.heads.head import Head
from lrtflite_converters.options import ExportOptions

# Frames, and the classes that share them: a class of one frame has no variance, and nothing that
# is computed from variances within classes would be checked.
FRAMES, CLASSES = 6, 3
# Frames of each session. One class first: rounding grows with every step through many layers.
SESSIONS = (1, FRAMES)
STEPS = 2
# Rates that replace a bundle's own, great enough that the change of a weight stands out from the
# rounding of the weight itself, and small enough that rounding does not grow.
GOLDEN_RATES = {
    "lr": 0.01,
    "trunk_lr": 0.001,
    "moment_rate": 0.01,
    "head_start": 0.5,
    "adapt_rate": 0.1,
    "epochs": 1.0,
}
# Largest latent of an untrained network, which fades from layer to layer: nothing could be learned.
FAINTEST = 1e-6
# Largest rounding error allowed through 27 layers, relative to the largest feature.
ROUNDING = 1e-3


def check_parts(network: Network, features: Features, head: Head, options: ExportOptions) -> None:
    """Raise unless the two parts, one after the other, are the network, and it makes sense."""
    model = network.model
    frames = _frames(network.input_size, np.random.default_rng(0))
    last = options.layer if options.pooled else network.architecture.pooled
    whole = keras.Model(model.input, network.output(last, pooled=options.pooled))
    expected = whole(network.scale(frames)).numpy()
    latents = features.run("extract", frames=frames)["latents"]
    found = np.asarray(head.trunk.infer(tf.constant(latents)))
    if not np.isfinite(expected).all():
        raise ModelError(
            f"Expected a network with finite weights, got NaN or infinity from {model.name}; "
            "train it again with a lower rate"
        )
    highest = np.abs(latents).max()
    if highest < FAINTEST:
        raise ModelError(
            f"Expected a trained network, got latents of {highest:.0e} at most; "
            "train it, or give it weights"
        )
    worst, largest = np.abs(found - expected).max(), np.abs(expected).max()
    if not worst <= ROUNDING * largest:  # NaN fails too
        raise ConversionError(
            f"Expected the features of {model.name} from its two parts, got a difference of "
            f"{worst:.1e} where the largest is {largest:.1e}; this is a fault of the converter"
        )


def golden_vectors(features: Features, head: Head, training: Training) -> Arrays:
    """Return the arrays of `golden.npz`. Both models are left in the state they came with."""
    signatures = (*features.signatures.values(), *head.signatures.values())
    taken = {name for signature in signatures for name in signature.inputs}
    given = _inputs(features.network.input_size, head.slots, training, taken)
    before = {id(model): _save(model) for model in (features, head)}
    found = run_golden(features, head, given)
    for model in (features, head):
        if before[id(model)]:
            model.run("restore", **before[id(model)])
    return {**given, **found}


def _inputs(input_size: int, slots: int, training: Training, taken: Collection[str]) -> Arrays:
    rng, size = np.random.default_rng(0), training.feeding.batch_size
    frames = _frames(input_size, rng)
    chosen = rng.permutation(max(slots, FRAMES))[:FRAMES].astype(np.int32) % slots
    classes = chosen[np.arange(FRAMES) % CLASSES]
    rows = np.stack([rng.integers(0, seen, (STEPS, size)) for seen in SESSIONS])
    counts = np.stack([np.bincount(classes[:seen], minlength=slots) for seen in SESSIONS])
    forgotten = np.zeros(slots, np.float32)
    forgotten[classes[0]] = 1
    values = {**training.values, **GOLDEN_RATES}
    scalars = {
        f"{SCALARS}{name}": np.full(len(SESSIONS), value, np.float32)
        for name, value in values.items()
        if name in training.names and name in taken
    }
    return {
        "frames": frames,
        "classes": classes,
        "rows": rows.astype(np.int32),
        "gathered": np.stack([_once(seen, size) for seen in SESSIONS]),
        "counts": counts.astype(np.float32),
        "forgotten": forgotten,
        "group": np.resize(np.arange(FRAMES, dtype=np.int32), training.feeding.new_per_batch),
        **scalars,
    }


def _once(seen: int, size: int) -> NDArray[np.int32]:
    """(mini-batches, size) int32: each of the first `seen` frames once, -1 in empty places."""
    batches = -(-FRAMES // size)
    rows = np.full(batches * size, -1, np.int32)
    rows[:seen] = np.arange(seen)
    return rows.reshape(batches, size)


def _save(model: Features | Head) -> Mapping[str, NDArray[Any]]:
    return model.run("save", zero=ZERO) if "save" in model.signatures else {}


def _frames(size: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """(FRAMES, size, size, 3) uint8: smooth coloured waves, so that every layer has work."""
    grid = np.linspace(0, 2 * np.pi, size)
    waves = rng.uniform(0.5, 6, (FRAMES, 3, 2))
    phases = rng.uniform(0, 2 * np.pi, (FRAMES, 3, 1, 1))
    angle = waves[..., :1, None] * grid[:, None] + waves[..., 1:, None] * grid + phases
    return (127.5 + 127.5 * np.sin(angle)).astype(np.uint8).transpose(0, 2, 3, 1)
