"""Latents and frames for tests of the learner, and a fingerprint to compare learners."""

from __future__ import annotations

import numpy as np

from lrtflite import Learner, Training
from lrtflite.bundle.feeding import SESSION, Feeding
from lrtflite.bundle.training import Rate
from lrtflite.state.models import save_models

# Feeding of a bundle at pool6, and every rate that a CWR* bundle may have.
DEFAULTS = Training(
    Feeding(batch_size=120, new_per_batch=20, epochs=4, least_steps=24, gathers=SESSION),
    {
        "lr": Rate(0.003),
        "momentum": Rate(0.9, most=1.0),
        "weight_decay": Rate(5e-4, most=1.0),
        "head_start": Rate(1.0, most=1.0),
        "trunk_lr": Rate(0.015),
        "moment_rate": Rate(0.03, most=1.0),
        "adapt_rate": Rate(5e-5, most=1.0),
    },
)
TRAINING = DEFAULTS.with_options(lr=0.02, epochs=2, least_steps=1)


def latents_of(kind: int, count: int = 45, *, seed: int = 0) -> np.ndarray:
    """Return latents (count, 256) float32, a separate cluster for each kind of object."""
    centre = np.random.default_rng(1000 + kind).exponential(1, 256)
    noise = np.random.default_rng((seed, kind)).normal(0, 0.3, (count, 256))
    return np.clip(centre + noise, 0, 6).astype(np.float32)


def alike_latents(kind: int, day: int) -> np.ndarray:
    """Return latents (20, 256) float32 of kinds that look much alike, in the light of a day."""
    common = np.random.default_rng(7).exponential(1, 256)
    own = np.random.default_rng(1000 + kind).exponential(0.3, 256)
    light = np.random.default_rng((50, day)).normal(0, 0.5, 256)
    noise = np.random.default_rng((day, kind)).normal(0, 0.1, (20, 256))
    return np.clip(common + own + light + noise, 0, 6).astype(np.float32)


def frames_of(kind: int, count: int = 12) -> np.ndarray:
    """Return frames (count, 128, 128, 3) uint8 of noisy coloured blocks, different per kind."""
    rng = np.random.default_rng(kind)
    blocks = rng.integers(40, 215, (8, 8, 3)).repeat(16, 0).repeat(16, 1)
    return (blocks + rng.integers(-25, 25, (count, 128, 128, 3))).astype(np.uint8)


def fingerprint(learner: Learner) -> list[bytes]:
    """Return the whole state of a learner, to the last bit, but for random ids and times."""
    committed = learner.committed
    state = committed.state()
    # The models that answer hold the same as those that train.
    serving = save_models(committed.serving, committed.features)
    for name, values in state.arrays.items():
        np.testing.assert_array_equal(serving[name], values)
    for entry in state.meta.history:
        del entry["id"], entry["time"]
    memory = [state.memory.rows.all(), *state.memory.facts.values()]
    found = (*(state.arrays[name] for name in sorted(state.arrays)), *memory)
    meta = repr((state.meta, state.memory.counter)).encode()
    return [*(each.tobytes() for each in found), meta]
