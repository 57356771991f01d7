"""Drive a bundle's head through one session: begin, train, gather, consolidate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.bundle.feeding import NOTHING
from lrtflite.bundle.training import Scalars, Training
from lrtflite.contract.signatures import REPLAYED
from lrtflite.errors import InputError
from lrtflite.progress import Phase
from lrtflite.runtime.model import Model
from lrtflite.session.minibatch import Patterns, each_once, gather_steps, minibatches
from lrtflite.session.session import Session


@dataclass(frozen=True)
class Outcome:
    """The outcome of a session: the number of steps, and the last epoch's mean loss and accuracy.

    Loss and accuracy are None for a head without training steps. `trains` is false if only the last
    layer learned. `rates` are the scalars passed to every step. `learned` (C,) is 1 for each class
    slot that has learned.
    """

    steps: int
    loss: float | None
    accuracy: float | None
    trains: bool
    rates: Scalars
    learned: NDArray[np.float32]


def train_head(
    head: Model,
    patterns: Patterns,
    training: Training,
    *,
    classes: int,
    rng: np.random.Generator,
    session: Session,
) -> Outcome:
    """Run one session on `head`; the memory is replayed, not changed.

    The graph decides from `counts` which layers train; `begin` returns the decision.
    """
    counts = patterns.counts(classes)
    with session.clock(Phase.BEGIN):
        begun = head.run("begin", counts=counts, **_rates(head, "begin", training))
    trains = bool(begun["trains"][0])
    steps: list[Mapping[str, NDArray[Any]]] = []
    rates: Scalars = {}
    if "train" in head.signatures:
        signature = "train" if trains or "train_last" not in head.signatures else "train_last"
        rates = _rates(head, signature, training)
        steps = _train(head, signature, patterns, training, rates, classes, rng, session)
    if training.feeding.gathers != NOTHING:
        _gather(head, patterns, training, classes, session)
    with session.clock(Phase.CONSOLIDATE):
        ended = head.run("consolidate", counts=counts, **_rates(head, "consolidate", training))
    loss, accuracy = _last_epoch(steps, patterns, training)
    return Outcome(len(steps), loss, accuracy, trains, rates, ended["learned"])


def check_finite(tensors: Mapping[str, NDArray[Any]], outcome: Outcome) -> None:
    """Raise InputError if a session left NaN or infinity in a tensor.

    No loss was computed with the final weights, so check them directly.
    """
    for name, values in tensors.items():
        if not np.isfinite(values).all():
            raise _diverged(f"NaN or infinity in {name}", outcome.rates)


def _train(
    head: Model,
    signature: str,
    patterns: Patterns,
    training: Training,
    rates: Scalars,
    classes: int,
    rng: np.random.Generator,
    session: Session,
) -> list[Mapping[str, NDArray[Any]]]:
    feeding, sizes = training.feeding, {"new": len(patterns), "stored": len(patterns.memory)}
    total = feeding.steps(**sizes)
    batches = minibatches(
        patterns,
        feeding,
        steps=feeding.longest(**sizes),
        classes=classes,
        rng=rng,
        out=head.buffer(signature, "latents"),
    )
    outcomes: list[Mapping[str, NDArray[Any]]] = []
    losses: list[float] = []
    while len(losses) < total:
        with session.clock(Phase.PREPARE):
            latents, targets = next(batches)
        with session.clock(Phase.TRAIN):
            outcomes.append(head.run(signature, latents=latents, targets=targets, **rates))
        losses.append(outcomes[-1]["loss"].item())
        if len(losses) == total and feeding.goes_on(losses, **sizes):
            total += feeding.steps_per_epoch(**sizes)
        session.report(Phase.TRAIN, len(losses), total)
    for outcome in outcomes:
        if not np.isfinite(outcome["loss"]).all():
            raise _diverged(f"loss {outcome['loss'].item()}", rates)
    return outcomes


def _gather(
    head: Model, patterns: Patterns, training: Training, classes: int, session: Session
) -> None:
    rates = _rates(head, "gather", training)
    out = head.buffer("gather", "latents")
    total = gather_steps(patterns, training.feeding)
    told = REPLAYED in head.signatures["gather"].inputs
    for step, (latents, targets, replayed) in enumerate(
        each_once(patterns, training.feeding, classes=classes, out=out), start=1
    ):
        source = {REPLAYED: np.array([replayed], np.float32)} if told else {}
        with session.clock(Phase.GATHER):
            head.run("gather", latents=latents, targets=targets, **source, **rates)
        session.report(Phase.GATHER, step, total)


def _last_epoch(
    steps: list[Mapping[str, NDArray[Any]]], patterns: Patterns, training: Training
) -> tuple[float | None, float | None]:
    if not steps:
        return None, None
    count = training.feeding.steps_per_epoch(new=len(patterns), stored=len(patterns.memory))
    loss, accuracy = (
        float(np.mean([step[name][0] for step in steps[-count:]])) for name in ("loss", "accuracy")
    )
    return loss, accuracy


def _rates(head: Model, signature: str, training: Training) -> Scalars:
    return training.scalars(head.signatures[signature].inputs)


def _diverged(seen: str, rates: Scalars) -> InputError:
    at = ", ".join(f"{name} {rate.item():g}" for name, rate in rates.items())
    return InputError(f"Training diverged ({seen}){f' at {at}' * bool(at)}", "lower the rates")
