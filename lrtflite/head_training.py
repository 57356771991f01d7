"""Train a bundle's head on one session: begin, mini-batches of new and replayed, consolidate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.errors import InputError
from lrtflite.manifest import Manifest, Training
from lrtflite.memory import ReplayMemory
from lrtflite.minibatch import Composition, Latents, minibatches
from lrtflite.runtime import Model
from lrtflite.session import Session

Rates = dict[str, NDArray[np.float32]]


@dataclass(frozen=True)
class Outcome:
    """Steps taken, and mean loss and accuracy over the mini-batches of the last epoch.

    `training` is what the session really trained with, see `trunk_at_rest`; `rates` are those of
    it that `train` took.
    """

    steps: int
    loss: float
    accuracy: float
    training: Training
    rates: Rates


def trunk_at_rest(training: Training, counts: NDArray[np.float32]) -> Training:
    """`training` with the trunk and all moments still, where one class has all the patterns.

    Its loss falls fastest where every picture looks like it, and nothing else speaks up.
    """
    if np.count_nonzero(counts) > 1:
        return training
    return replace(training, trunk_lr=0.0, moment_rate=0.0, adapt_rate=0.0)


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

    Of one class alone only the CWR layer learns, see `trunk_at_rest`.

    CWR* weighs a class by how many patterns of it the session has, each counted once: those of the
    batch and those in the memory.
    """
    patterns = np.concatenate([labels, memory.labels])
    counts = np.bincount(patterns, minlength=manifest.slots).astype(np.float32)
    composition = Composition.of(
        batch_size=manifest.batch_size,
        new_per_batch=manifest.new_per_batch,
        new=len(labels),
        stored=len(memory),
    )
    per_epoch = composition.steps_per_epoch(len(labels))
    steps = composition.steps(len(labels), training)
    training = trunk_at_rest(training, counts)
    rates = training.inputs(head.signatures["train"].inputs)
    with session.clock("begin"):
        head.run("begin", counts=counts, **training.inputs(head.signatures["begin"].inputs))
    batches = minibatches(
        latents,
        labels,
        memory,
        composition=composition,
        steps=steps,
        slots=manifest.slots,
        rng=rng,
        out=head.buffer("train", "latents"),
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
        raise _diverged(f"loss {loss}", rates)
    with session.clock("consolidate"):
        head.run("consolidate", counts=counts)
    accuracy = float(np.mean([outcome["accuracy"] for outcome in last_epoch]))
    return Outcome(steps, loss, accuracy, training, rates)


def check_finite(models: dict[str, NDArray[Any]], outcome: Outcome) -> None:
    """Raise InputError if a session ended in NaN or infinity.

    No loss was computed with the final weights, so they are checked themselves.
    """
    for name, values in models.items():
        if not np.isfinite(values).all():
            raise _diverged(f"NaN or infinity in {name}", outcome.rates)


def _diverged(seen: str, rates: Rates) -> InputError:
    at = " and ".join(
        f"{name} {rates[name].item():g}" for name in ("lr", "trunk_lr") if name in rates
    )
    return InputError(f"Training diverged ({seen}) at {at}; lower the lr")
