"""Train a bundle's head on one session: begin, mini-batches of new and replayed, consolidate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrtflite.errors import InputError
from lrtflite.manifest import Manifest, Training
from lrtflite.memory import ReplayMemory
from lrtflite.minibatch import Composition, Latents, minibatches
from lrtflite.runtime import Model
from lrtflite.session import Session


@dataclass(frozen=True)
class Outcome:
    """Steps taken, and mean loss and accuracy over the mini-batches of the last epoch."""

    steps: int
    loss: float
    accuracy: float


def train_head(
    head: Model,
    latents: Latents,
    labels: NDArray[np.int32],
    memory: ReplayMemory,
    *,
    manifest: Manifest,
    training: Training,
    rng: np.random.Generator,
    session: Session,
) -> Outcome:
    """Run one session on `head`; the memory is replayed and not changed.

    CWR* weighs a class by how many patterns of it the session has, each counted once: those of the
    batch and those in the memory.
    """
    patterns = np.concatenate([labels, memory.labels])
    counts = np.bincount(patterns, minlength=manifest.slots).astype(np.float32)
    composition = Composition.of(
        batch_size=manifest.batch_size, new_per_batch=manifest.new_per_batch, stored=len(memory)
    )
    per_epoch = composition.steps_per_epoch(len(labels))
    steps = per_epoch * training.epochs
    rates = training.rates()
    with session.clock("begin"):
        head.run("begin", counts=counts)
    batches = minibatches(
        latents,
        labels,
        memory,
        composition=composition,
        steps=steps,
        slots=manifest.slots,
        rng=rng,
    )
    outcomes = []
    for step in range(steps):
        with session.clock("prepare"):
            batch, targets = next(batches)
        with session.clock("train"):
            outcomes.append(head.run("train", latents=batch, targets=targets, **rates))
        session.report("train", step + 1, steps)
    last_epoch = outcomes[-per_epoch:]
    loss = float(np.mean([outcome["loss"] for outcome in last_epoch]))
    if not np.isfinite(loss):
        raise InputError(f"Training diverged (loss {loss}) at lr {training.lr}; lower the lr")
    with session.clock("consolidate"):
        average = head.run("consolidate", counts=counts)["average"]
    # The last step's weights have had no loss yet; their mean tells whether they are numbers.
    if not np.isfinite(average):
        raise InputError(f"Training diverged (weights {average}) at lr {training.lr}; lower the lr")
    accuracy = float(np.mean([outcome["accuracy"] for outcome in last_epoch]))
    return Outcome(steps, loss, accuracy)
