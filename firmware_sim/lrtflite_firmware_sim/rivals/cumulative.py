"""Cumulative training: the paper's upper bound, which keeps everything and begins again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lrtflite.bundle.feeding import Feeding
from lrtflite.bundle.training import Rate, Training
from lrtflite.session.session import Session
from lrtflite_firmware_sim.rivals.rival import Floats, Outcome, Rival, SlotArray
from lrtflite_firmware_sim.rivals.softmax import softmax, train

# Passes over everything seen so far. On drawn worlds 1000 and 1001, 100 epochs were not better.
EPOCHS = 40
# The paper's mini-batch, and its rate of the last layer for its 1,024 features. With half as many
# features, a step changes a score half as much, so the rate is doubled.
BATCH_SIZE, LR, FEATURES = 128, 0.003, 1024
# Least steps, so that a few pictures are enough; as in a bundle.
MIN_STEPS = 24


@dataclass(frozen=True)
class Cumulative(Rival):
    """Train on every latent seen so far, after each session: the upper bound.

    The last layer (softmax regression without bias) starts from zero in every session, so the
    result does not depend on the order in which classes came. `weights` (F, learned classes) has a
    column for each slot that has learned, in the order of slots.
    """

    latents: Floats
    slots: SlotArray
    weights: Floats
    classes: int
    policy: ClassVar[str] = "everything"
    has_capacity: ClassVar[bool] = False

    @classmethod
    def start(cls, *, classes: int, features: int, capacity: int) -> Cumulative:
        nothing = np.empty((0, features), np.float32)
        return cls(nothing, np.empty(0, np.int32), nothing.T, classes)

    @classmethod
    def training(cls, features: int) -> Training:
        rates = {
            "lr": Rate(LR * FEATURES / features, meaning="learning rate of the last layer"),
            "momentum": Rate(0.9, most=1.0, meaning="momentum of SGD"),
            "weight_decay": Rate(5e-4, most=1.0, meaning="weight decay of the last layer"),
        }
        return Training(Feeding(BATCH_SIZE, BATCH_SIZE, EPOCHS, MIN_STEPS), rates)

    def learn(
        self,
        latents: Floats,
        slots: SlotArray,
        training: Training | None,
        *,
        rng: np.random.Generator,
        session: Session,
    ) -> tuple[Cumulative, Outcome]:
        every = np.concatenate([self.latents, latents])
        placed = np.concatenate([self.slots, slots])
        known, targets = np.unique(placed, return_inverse=True)
        weights, outcome = train(
            every,
            targets.astype(np.int32),
            training or self.training(every.shape[1]),
            classes=len(known),
            rng=rng,
            session=session,
        )
        return replace(self, latents=every, slots=placed, weights=weights), outcome

    def probabilities(self, latents: Floats) -> Floats:
        found = np.zeros((len(latents), self.classes), np.float32)
        if len(self):
            found[:, self.learned] = softmax(latents @ self.weights)
        return found

    @property
    def learned(self) -> NDArray[np.bool_]:
        return np.bincount(self.slots, minlength=self.classes) > 0

    @property
    def capacity(self) -> int:
        return len(self)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"latents": self.latents, "slots": self.slots, "weights": self.weights}

    def __len__(self) -> int:
        return len(self.slots)

    @property
    def nbytes(self) -> int:
        return self.latents.nbytes + self.slots.nbytes
