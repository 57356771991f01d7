"""Heads of any strategy on plain vectors, driven by the contract, for tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.contract.signatures import ZERO
from lrtflite_converters.blocks.block import Chain
from lrtflite_converters.heads import HEADS
from lrtflite_converters.heads.head import Head, HeadPlan
from lrtflite_converters.training.regularisers import REGULARISERS
from lrtflite_converters.training.trunk import Trunk

Array = NDArray[Any]
Batches = Iterable[tuple[Array, Array]]


def vector_head(
    kind: str, slots: int, features: int, *, batch_size: int, regulariser: str = "none", **plan: Any
) -> Head:
    """Return a head without a trunk."""
    trunk = Trunk(Chain((), image=(features,)))
    guard = REGULARISERS.choose(regulariser)()
    return HEADS.choose(kind)(
        HeadPlan(slots=slots, batch_size=batch_size, trunk=trunk, regulariser=guard, **plan)
    )


def fed(head: Head, signature: str, rates: Mapping[str, float]) -> dict[str, Array]:
    """Return the rates that a signature takes, as a client feeds them."""
    taken = head.signatures[signature].inputs
    return {name: np.array([value], "f") for name, value in rates.items() if name in taken}


def run_session(
    head: Head, counts: Array, batches: Batches, gathered: Batches, rates: Mapping[str, float]
) -> list[float]:
    """Run one session by the contract; return the losses."""
    head.run("begin", counts=counts, **fed(head, "begin", rates))
    losses = []
    for x, t in batches:
        outcome = head.run("train", latents=x, targets=t, **fed(head, "train", rates))
        losses.append(float(outcome["loss"].item()))
    if "gather" in head.signatures:
        for x, t in gathered:
            head.run("gather", latents=x, targets=t, **fed(head, "gather", rates))
    head.run("consolidate", counts=counts, **fed(head, "consolidate", rates))
    return losses


def saved(head: Head) -> dict[str, Array]:
    return head.run("save", zero=ZERO)


def drawn_session(
    rng: np.random.Generator, classes: list[int], slots: int, features: int, size: int, steps: int
) -> tuple[Array, list[tuple[Array, Array]]]:
    """Return counts (C,), and mini-batches of random patterns of these classes."""
    batches = []
    for _ in range(steps):
        drawn = rng.choice(classes, size)
        x = rng.normal(0, 1, (size, features)) + 0.5 * drawn[:, None]
        batches.append((x.astype("f"), np.eye(slots, dtype="f")[drawn]))
    counts = np.zeros(slots, "f")
    counts[classes] = size
    return counts, batches
