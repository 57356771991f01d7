"""Golden vectors: the inputs of the golden sessions, and the outputs that TensorFlow computes.

`lrtflite.contract.golden` runs the sessions, in TensorFlow and in every client. The first session
has one class, so the trunk rests. The second has that class and new ones. Some heads need more
sessions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras as keras
from numpy.typing import NDArray

from lrtflite.bundle.training import Training
from lrtflite.contract.golden import ROUNDING as GOLDEN_ROUNDING
from lrtflite.contract.golden import SCALARS, Arrays, run_golden
from lrtflite.contract.signatures import ZERO
from lrtflite.errors import ConversionError, ModelError
from lrtflite.host.network import Network
from lrtflite_converters.features.crops import latents_of
from lrtflite_converters.features.features import Features
from lrtflite_converters.features.sample_frames import wave_frames
from lrtflite_converters.foreign.features import ForeignFeatures
from lrtflite_converters.heads.head import Head
from lrtflite_converters.request.options import Conversion

# Frames, and the classes that share them: a class of one frame has no variance, so values computed
# from variances within classes would not be checked.
FRAMES, CLASSES = 6, 3
# Frames of each session. The first has one class, because rounding grows with each trunk step.
SESSIONS = (1, FRAMES)
STEPS = 2
# Rates that replace the bundle's own: large enough that the change of a weight exceeds its rounding
# error, and small enough that rounding errors do not grow.
GOLDEN_RATES = {
    "lr": 0.01,
    "trunk_lr": 0.001,
    "moment_rate": 0.01,
    "head_start": 0.5,
    "first_lr": 0.02,
    "first_trunk_lr": 0.002,
    "penalty": 1000.0,
    "shrinkage": 0.1,
    "adapt_rate": 0.1,
    "epochs": 1.0,
}
# Largest latent below which nothing can be learned: values of an untrained network fade with depth.
FAINTEST = 1e-6
# Largest rounding error allowed through 27 layers, relative to the largest feature.
ROUNDING = 1e-3


def check_latents(network: Network, features: Features) -> None:
    """Raise ModelError if latents are not finite, or so small that nothing can be learned."""
    frames = wave_frames(FRAMES, network.input_size, np.random.default_rng(0))
    _check_values(network.model, features.run("extract", frames=frames)["latents"])


def check_split(network: Network, features: Features, head: Head, options: Conversion) -> None:
    """Raise unless features and head together compute what the network does, with finite values.

    `features` are those before quantisation.
    """
    model = network.model
    frames = wave_frames(FRAMES, network.input_size, np.random.default_rng(0))
    top = options.chosen_strategy.top(options.place(network.features()))
    last = options.layer if options.pooled else top
    averaged = last != network.architecture.pooled
    output = network.output(last, pooled=averaged, second=options.and_layer)
    whole = keras.Model(model.input, output)
    expected = latents_of(whole, network.scale(frames), crops=options.crops).numpy()
    latents = features.run("extract", frames=frames)["latents"]
    _check_values(model, latents, expected)
    x = tf.constant(latents)
    found = np.asarray(head.trunk.infer_scaled(network.scale(x) if features.reads_frames else x))
    worst, largest = np.abs(found - expected).max(), np.abs(expected).max()
    if not worst <= ROUNDING * largest:  # NaN fails too
        raise ConversionError(
            f"Expected the features of {model.name} from its two parts, got a difference of "
            f"{worst:.1e} where the largest is {largest:.1e}",
            "this is a bug, please report it",
        )


def _check_values(model: keras.Model, latents: NDArray[Any], *others: NDArray[Any]) -> None:
    if not all(np.isfinite(values).all() for values in (latents, *others)):
        raise ModelError(
            f"Expected a network with finite weights, got NaN or infinity from {model.name}",
            "train it again with a lower learning rate",
        )
    highest = np.abs(latents).max()
    if highest < FAINTEST:
        raise ModelError(
            f"Expected a trained network, got latents of {highest:.0e} at most",
            "train it, or give it weights",
        )


def golden_vectors(features: Features | ForeignFeatures, head: Head, training: Training) -> Arrays:
    """Return the arrays of `golden.npz`; both models end in their original state."""
    signatures = (*features.signatures.values(), *head.signatures.values())
    taken = {name for signature in signatures for name in signature.inputs}
    given = _inputs(features.input_size, head, training, taken)
    before = {id(model): _save(model) for model in (features, head)}
    found = run_golden(features, head, given)
    for model in (features, head):
        if before[id(model)]:
            model.run("restore", **before[id(model)])
    rounding = {GOLDEN_ROUNDING: np.array([features.rounding], np.float32)}
    return {**given, **found, **(rounding if features.rounding else {})}


def _inputs(input_size: int, head: Head, training: Training, taken: Collection[str]) -> Arrays:
    rng, size = np.random.default_rng(0), training.feeding.batch_size
    slots, sessions = head.slots, SESSIONS + (FRAMES,) * head.golden_sessions
    frames = wave_frames(FRAMES, input_size, rng)
    chosen = rng.permutation(max(slots, FRAMES))[:FRAMES].astype(np.int32) % slots
    classes = chosen[np.arange(FRAMES) % CLASSES]
    rows = np.stack([rng.integers(0, seen, (STEPS, size)) for seen in sessions])
    counts = np.stack([np.bincount(classes[:seen], minlength=slots) for seen in sessions])
    forgotten = np.zeros(slots, np.float32)
    forgotten[classes[0]] = 1
    values = {**training.values, **GOLDEN_RATES}
    scalars = {
        f"{SCALARS}{name}": np.full(len(sessions), value, np.float32)
        for name, value in values.items()
        if name in training.names and name in taken
    }
    return {
        "frames": frames,
        "classes": classes,
        "rows": rows.astype(np.int32),
        "gathered": np.stack([_once(seen, size) for seen in sessions]),
        "counts": counts.astype(np.float32),
        "forgotten": forgotten,
        "group": np.resize(np.arange(FRAMES, dtype=np.int32), training.feeding.new_per_batch),
        **scalars,
    }


def _once(seen: int, size: int) -> NDArray[np.int32]:
    """Return (mini-batches, size) int32: each of the first `seen` frames once, then -1."""
    batches = -(-FRAMES // size)
    rows = np.full(batches * size, -1, np.int32)
    rows[:seen] = np.arange(seen)
    return rows.reshape(batches, size)


def _save(model: Features | ForeignFeatures | Head) -> Mapping[str, NDArray[Any]]:
    return model.run("save", zero=ZERO) if "save" in model.signatures else {}
