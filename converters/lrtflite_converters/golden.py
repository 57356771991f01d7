"""Golden vectors: what a client must get from the bundle, computed by TensorFlow.

A client feeds `frames` and compares `latents`; then it restores nothing, calls `begin(counts)`,
`train` once per row of `rows` (mini-batch row k is latents[rows[step, k]] with class
`classes[rows[step, k]]`), compares `losses`, calls `consolidate(counts)`, and compares what `infer`
says of `latents` and what `save` returns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.errors import ModelError
from lrtflite.manifest import Training
from lrtflite_converters.features import Features
from lrtflite_converters.head import Head

FRAMES = 6
STEPS = 3
# An untrained network fades from layer to layer; nothing could be learned from its latents.
FAINTEST = 1e-6


def golden_vectors(
    features: Features, head: Head, *, batch_size: int, training: Training
) -> dict[str, NDArray[Any]]:
    """Arrays of `golden.npz`. The head is left in the state it came with."""
    size = features.below.input_shape[1]
    slots = head.past.shape[0]
    rng = np.random.default_rng(0)
    frames = _frames(size, rng)
    latents = features.extract(frames)["latents"].numpy()
    if np.abs(latents).max() < FAINTEST:
        raise ModelError(
            f"Expected a trained network, got latents of {np.abs(latents).max():.0e} at most; "
            "train it, or give it weights"
        )
    classes = rng.permutation(max(slots, FRAMES))[:FRAMES].astype(np.int32) % slots
    rows = rng.integers(0, FRAMES, (STEPS, batch_size)).astype(np.int32)
    counts = np.bincount(classes, minlength=slots).astype(np.float32)
    before = {name: value.numpy() for name, value in head.save().items()}
    probabilities_before = head.infer(latents)["probabilities"].numpy()
    head.begin(counts)
    rates = training.rates()
    losses = [
        head.train(latents[row], np.eye(slots, dtype=np.float32)[classes[row]], **rates)["loss"]
        for row in rows
    ]
    head.consolidate(counts)
    after = {f"state/{name}": value.numpy() for name, value in head.save().items()}
    probabilities_after = head.infer(latents)["probabilities"].numpy()
    head.restore(**before)
    return {
        "frames": frames,
        "latents": latents,
        "classes": classes,
        "rows": rows,
        "counts": counts,
        **rates,
        "losses": np.array(losses, np.float32),
        "probabilities_before": probabilities_before,
        "probabilities_after": probabilities_after,
        **after,
    }


def _frames(size: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """(FRAMES, size, size, 3) uint8: smooth coloured waves, so that every layer has work."""
    grid = np.linspace(0, 2 * np.pi, size)
    waves = rng.uniform(0.5, 6, (FRAMES, 3, 2))
    phases = rng.uniform(0, 2 * np.pi, (FRAMES, 3, 1, 1))
    angle = waves[..., :1, None] * grid[:, None] + waves[..., 1:, None] * grid + phases
    return (127.5 + 127.5 * np.sin(angle)).astype(np.uint8).transpose(0, 2, 3, 1)
