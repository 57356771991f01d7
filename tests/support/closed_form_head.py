"""Closed-form heads for tests: made, taught and asked as a client does it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.contract.signatures import ZERO
from lrtflite_converters.blocks.block import Chain
from lrtflite_converters.heads import HEADS
from lrtflite_converters.heads.head import Head, HeadPlan
from lrtflite_converters.training.trunk import Trunk

Array = NDArray[Any]
# A rate so great that the softmax keeps scores that are some hundreds apart.
TEMPERATURE = 100.0


def make_head(kind: str, slots: int, features: int, *, batch_size: int = 32) -> Head:
    """A head on vectors of so many features."""
    trunk = Trunk(Chain((), image=(features,)))
    return HEADS.choose(kind)(HeadPlan(slots=slots, batch_size=batch_size, trunk=trunk))


def gather(head: Head, latents: Array, slots: Array) -> None:
    """Feed each pattern once; the last mini-batch has empty places."""
    size, features = head.signatures["gather"].inputs["latents"].shape
    for start in range(0, len(latents), size):
        part = latents[start : start + size]
        batch, targets = np.zeros((size, features), "f"), np.zeros((size, head.slots), "f")
        batch[: len(part)] = part
        targets[np.arange(len(part)), slots[start : start + size]] = 1
        head.run("gather", latents=batch, targets=targets)


def teach(head: Head, latents: Array, slots: Any, *, temperature: float = TEMPERATURE) -> None:
    """Run one session; `slots` has one number for each pattern, or one for all."""
    slots = np.broadcast_to(slots, len(latents))
    counts = np.bincount(slots, minlength=head.slots).astype("f")
    head.run("begin", counts=counts)
    gather(head, latents, slots)
    head.run("consolidate", counts=counts, temperature=np.array([temperature], "f"))


def forget(head: Head, slot: int) -> Array:
    """Forget a class; return `learned`."""
    return head.run("forget", mask=np.eye(head.slots, dtype="f")[slot])["learned"]


def scores(head: Head, latents: Array, known: Any) -> Array:
    """(n, known): scores of the known classes, up to what is common to all of them."""
    chances = head.run("infer", latents=latents)["probabilities"][:, known]
    # The state has what the scores were divided by.
    found: Array = saved(head)["temperature"] * np.log(chances.astype(float))
    return found


def saved(head: Head) -> dict[str, Array]:
    return head.run("save", zero=ZERO)


class Clouds:
    """Random patterns in clouds, one for each class, most of which all have in common."""

    def __init__(self, classes: int, features: int, *, seed: int = 0, signed: bool = False) -> None:
        self.rng = np.random.default_rng(seed)
        self.lowest = -6 if signed else 0
        shape = (1 + classes, features)
        drawn = self.rng.normal(0, 1, shape) if signed else self.rng.exponential(1, shape)
        self.centres = drawn[0] + 0.5 * drawn[1:]

    def draw(self, kind: int, count: int) -> Array:
        """(count, F) float32 of one class."""
        noise = self.rng.normal(0, 0.5, (count, self.centres.shape[1]))
        return np.clip(self.centres[kind] + noise, self.lowest, 6).astype("f")

    def of_each(self, count: int) -> tuple[Array, Array]:
        """Patterns of every class, and their slots."""
        kinds = range(len(self.centres))
        return np.concatenate([self.draw(k, count) for k in kinds]), np.repeat(kinds, count)
