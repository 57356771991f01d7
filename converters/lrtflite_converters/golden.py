"""Golden vectors: what a client must get from the bundle, computed by TensorFlow.

A client feeds `frames` and compares `latents`; then it restores nothing. In each session it calls
`begin(counts[session], head_start)`, `train` once per row of `rows[session]` (mini-batch row k is
latents[row[k]] with class `classes[row[k]]`), compares `losses[session]` and calls
`consolidate(counts[session])`. In the first session the trunk rests (`trunk_lr` and `moment_rate`
are 0); the second meets classes that the first has taught, and new ones. The client compares what
`infer` then says of `latents` and by how much each tensor of `save` has changed. Where moments
adapt, it calls `adapt(frames[group], rate=adapt_rate)` and compares how the moments changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import tf_keras as keras
from numpy.typing import NDArray

from lrtflite.errors import ConversionError, ModelError
from lrtflite.host.mobilenet import scale_frames
from lrtflite.verify import sample, trunk_resting
from lrtflite_converters.features import AdaptingFeatures, Features
from lrtflite_converters.head import Head
from lrtflite_converters.usual import LAST_LAYER

FRAMES = 6
# A session's frames: the second one has new classes beside known ones. In the first the trunk
# rests, because rounding grows with every step through many layers.
SESSIONS = (FRAMES // 2, FRAMES)
STEPS = 2
# Great enough that the change of a weight stands out from the rounding of the weight itself.
TRAINING = replace(LAST_LAYER, lr=0.01, trunk_lr=0.001, moment_rate=0.01, head_start=0.5)
ADAPT_RATE = np.array([0.1], np.float32)
# An untrained network fades from layer to layer; nothing could be learned from its latents.
FAINTEST = 1e-6
# Of rounding through 27 layers.
OF_THE_LARGEST = 1e-3


def check_parts(model: keras.Model, features: Features, head: Head) -> None:
    """Refuse a network without sense, and parts that are not, one after the other, that network."""
    frames = _frames(model.input_shape[1], np.random.default_rng(0))
    expected = keras.Model(model.input, model.get_layer("pool6").output)(scale_frames(frames))
    latents = features.extract(frames=frames)["latents"]
    found = head.trunk.infer(latents).numpy()
    if not np.isfinite(expected).all():
        raise ModelError(
            f"Expected a network with finite weights, got NaN or infinity from {model.name}; "
            "train it again with a lower rate"
        )
    highest = np.abs(latents.numpy()).max()
    if highest < FAINTEST:
        raise ModelError(
            f"Expected a trained network, got latents of {highest:.0e} at most; "
            "train it, or give it weights"
        )
    worst, largest = np.abs(found - expected).max(), np.abs(expected).max()
    if not worst <= OF_THE_LARGEST * largest:  # NaN fails too
        raise ConversionError(
            f"Expected the features of {model.name} from its two parts, got a difference of "
            f"{worst:.1e} where the largest is {largest:.1e}; this is a fault of the converter"
        )


def golden_vectors(features: Features, head: Head, *, batch_size: int) -> dict[str, NDArray[Any]]:
    """Arrays of `golden.npz`. Both models are left in the state they came with."""
    size = features.below.input_shape[1]
    slots = head.past.shape[0]
    rng = np.random.default_rng(0)
    frames = _frames(size, rng)
    latents = features.extract(frames=frames)["latents"].numpy()
    classes = rng.permutation(max(slots, FRAMES))[:FRAMES].astype(np.int32) % slots
    rows = np.stack([rng.integers(0, seen, (STEPS, batch_size)) for seen in SESSIONS])
    counts = np.stack([np.bincount(classes[:seen], minlength=slots) for seen in SESSIONS])
    counts = counts.astype(np.float32)
    rates = TRAINING.inputs(head.rates)
    before = _values(head.save())
    probabilities_before = head.infer(latents=latents)["probabilities"].numpy()
    start = TRAINING.inputs(("head_start",))
    targets = np.eye(slots, dtype=np.float32)[classes]
    losses = []
    for session, given in enumerate((trunk_resting(rates), rates)):
        head.begin(counts=counts[session], **start)
        losses.append(
            [
                head.train(latents=latents[row], targets=targets[row], **given)["loss"]
                for row in rows[session]
            ]
        )
        head.consolidate(counts=counts[session])
    changes = _changes("change", before, _values(head.save()))
    probabilities_after = head.infer(latents=latents)["probabilities"].numpy()
    head.restore(**before)
    return {
        "frames": frames,
        "latents": latents,
        "classes": classes,
        "rows": rows.astype(np.int32),
        "counts": counts,
        **start,
        **rates,
        "losses": np.array(losses, np.float32),
        "probabilities_before": probabilities_before,
        "probabilities_after": probabilities_after,
        **changes,
        **(_adapted(features, frames) if isinstance(features, AdaptingFeatures) else {}),
    }


def _adapted(features: AdaptingFeatures, frames: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
    group = np.resize(np.arange(FRAMES, dtype=np.int32), features.group)
    before = _values(features.save())
    features.adapt(frames=frames[group], rate=ADAPT_RATE)
    changes = _changes("moved", before, _values(features.save()))
    features.restore(**before)
    return {"group": group, "adapt_rate": ADAPT_RATE, **changes}


def _values(tensors: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    return {name: tensor.numpy() for name, tensor in tensors.items()}


def _changes(
    prefix: str, before: dict[str, NDArray[Any]], after: dict[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    return {f"{prefix}/{name}": sample(after[name] - before[name]) for name in before}


def _frames(size: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """(FRAMES, size, size, 3) uint8: smooth coloured waves, so that every layer has work."""
    grid = np.linspace(0, 2 * np.pi, size)
    waves = rng.uniform(0.5, 6, (FRAMES, 3, 2))
    phases = rng.uniform(0, 2 * np.pi, (FRAMES, 3, 1, 1))
    angle = waves[..., :1, None] * grid[:, None] + waves[..., 1:, None] * grid + phases
    return (127.5 + 127.5 * np.sin(angle)).astype(np.uint8).transpose(0, 2, 3, 1)
