"""Softmax regression by SGD, in numpy."""

from __future__ import annotations

import math

import numpy as np

from lrtflite.bundle.training import Training
from lrtflite.errors import InputError
from lrtflite.progress import Phase
from lrtflite.session.session import Session
from lrtflite_firmware_sim.rivals.rival import Floats, Outcome, SlotArray


def softmax(scores: Floats) -> Floats:
    """Return exp(scores) in each row, divided by the row's sum."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=1, keepdims=True)
    return shares


def gradient(weights: Floats, latents: Floats, targets: SlotArray) -> tuple[Floats, Floats, Floats]:
    """Return the gradient (F, C) of the mean cross entropy, and loss (n,) and hits (n,)."""
    rows = np.arange(len(targets))
    chances = softmax(latents @ weights)
    losses: Floats = -np.log(np.maximum(chances[rows, targets], np.finfo(np.float32).tiny))
    hits = (chances.argmax(axis=1) == targets).astype(np.float32)
    chances[rows, targets] -= 1
    return latents.T @ chances / np.float32(len(targets)), losses, hits


def train(
    latents: Floats,
    targets: SlotArray,
    training: Training,
    *,
    classes: int,
    rng: np.random.Generator,
    session: Session,
) -> tuple[Floats, Outcome]:
    """Return weights (F, classes), trained from zero on all patterns, and the outcome.

    Mini-batches go through a new random order in every epoch; the last of an epoch is smaller.
    """
    lr, momentum, decay = (
        np.float32(training.values[name]) for name in ("lr", "momentum", "weight_decay")
    )
    count, size = len(latents), training.feeding.batch_size
    per_epoch = math.ceil(count / size)
    epochs = max(training.epochs, math.ceil(training.least_steps / per_epoch))
    steps = min(epochs * per_epoch, training.feeding.most_steps)
    epochs = math.ceil(steps / per_epoch)
    weights = np.zeros((latents.shape[1], classes), np.float32)
    velocity = np.zeros_like(weights)
    # Rates that are too high overflow, which is an error below.
    with np.errstate(over="ignore", invalid="ignore"):
        for epoch in range(1, epochs + 1):
            order = rng.permutation(count)
            losses, hits = [], []
            left = steps - per_epoch * (epoch - 1)
            for start in range(0, count, size)[:left]:
                with session.clock(Phase.PREPARE):
                    rows = order[start : start + size]
                    some, wanted = latents[rows], targets[rows]
                with session.clock(Phase.TRAIN):
                    slope, loss, hit = gradient(weights, some, wanted)
                    velocity = momentum * velocity - lr * (slope + decay * weights)
                    weights = weights + velocity
                losses.append(loss)
                hits.append(hit)
            session.report(Phase.TRAIN, epoch, epochs)
    if not np.isfinite(weights).all():
        raise InputError(f"Training diverged (NaN or infinity in weights) at lr {lr:g}", "lower it")
    return weights, Outcome(
        steps,
        float(np.concatenate(losses).mean()),
        float(np.concatenate(hits).mean()),
    )
