"""iCaRL on frozen features, in streams that bring old classes again, as the paper ran it.

Rebuffi et al., *iCaRL: Incremental Classifier and Representation Learning*, CVPR 2017. Features do
not train here, so its representation learning (and the paper's 40 and 4 epochs) has no counterpart.
Its memory and its classification remain. A class of iCaRL cannot get new patterns later, so each
session opens virtual classes; an answer joins the virtual classes of the same class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lrtflite.bundle.training import Training
from lrtflite.errors import InputError
from lrtflite.progress import Phase
from lrtflite.replay.herding import herd
from lrtflite.session.session import Session
from lrtflite_firmware_sim.rivals.rival import Floats, Outcome, Rival, SlotArray
from lrtflite_firmware_sim.rivals.softmax import softmax


@dataclass(frozen=True)
class VirtualClass:
    """A class of one session: its slot, and its exemplars (m, F) of length 1 in herding order."""

    slot: int
    exemplars: Floats


@dataclass(frozen=True)
class ICaRL(Rival):
    """Answer with the class whose mean of stored exemplars is nearest (iCaRL, frozen features).

    The memory of `capacity` exemplars is shared equally by all virtual classes. `means` (V, F) are
    those of the exemplars of each virtual class, of length 1.
    """

    virtual: tuple[VirtualClass, ...]
    means: Floats
    classes: int
    size: int
    policy: ClassVar[str] = "herding"
    has_capacity: ClassVar[bool] = True

    @classmethod
    def start(cls, *, classes: int, features: int, capacity: int) -> ICaRL:
        return cls((), np.empty((0, features), np.float32), classes, capacity)

    @classmethod
    def least_capacity(cls, classes: Sequence[int]) -> int:
        return sum(classes)  # one exemplar for each virtual class

    def learn(
        self,
        latents: Floats,
        slots: SlotArray,
        training: Training | None,
        *,
        rng: np.random.Generator,
        session: Session,
    ) -> tuple[ICaRL, Outcome]:
        with session.clock(Phase.MEMORY):
            new = np.unique(slots)
            share = self.size // (len(self.virtual) + len(new))
            if not share:
                raise InputError(
                    f"Expected room for an exemplar of each of {len(self.virtual) + len(new)} "
                    f"virtual classes, got a replay size of {self.size}",
                    "give a larger one",
                )
            kept = [replace(each, exemplars=each.exemplars[:share]) for each in self.virtual]
            for slot in new:
                own = normalised(latents[slots == slot])
                kept.append(VirtualClass(int(slot), own[herd(own, share)]))
            means = normalised(np.stack([each.exemplars.mean(axis=0) for each in kept]))
        return replace(self, virtual=tuple(kept), means=means), Outcome()

    def probabilities(self, latents: Floats) -> Floats:
        """Return a softmax of minus the squared distances; only its order is meaningful."""
        found = np.zeros((len(latents), self.classes), np.float32)
        if self.virtual:
            nearest = fused(squared_distances(latents, self.means), self.slots, self.classes)
            found[:, self.learned] = softmax(-nearest[:, self.learned])
        return found

    @property
    def slots(self) -> SlotArray:
        """Return the slot of each virtual class, (V,) int32."""
        return np.array([each.slot for each in self.virtual], np.int32)

    @property
    def learned(self) -> NDArray[np.bool_]:
        return np.bincount(self.slots, minlength=self.classes) > 0

    @property
    def capacity(self) -> int:
        return self.size

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "exemplars": np.concatenate([each.exemplars for each in self.virtual]),
            "counts": np.array([len(each.exemplars) for each in self.virtual], np.int32),
            "slots": self.slots,
        }

    def __len__(self) -> int:
        return sum(len(each.exemplars) for each in self.virtual)

    @property
    def nbytes(self) -> int:
        # Each exemplar has a slot, as each latent in a replay memory has.
        slot_bytes = np.dtype(np.int32).itemsize
        return sum(each.exemplars.nbytes for each in self.virtual) + slot_bytes * len(self)


def normalised(vectors: Floats) -> Floats:
    """Return the vectors (n, F) scaled to length 1; a vector of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Floats = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return scaled


def squared_distances(latents: Floats, means: Floats) -> Floats:
    """Return the squared distances (n, V) of latents, scaled to length 1, from the means."""
    own = normalised(latents)
    squares = (own**2).sum(axis=1)[:, np.newaxis] + (means**2).sum(axis=1)
    distances: Floats = squares - 2 * own @ means.T
    return distances


def fused(distances: Floats, slots: SlotArray, classes: int) -> Floats:
    """Return the least of the distances (n, V) for each class, (n, classes); infinity for none."""
    nearest = np.full((classes, len(distances)), np.inf, np.float32)
    np.minimum.at(nearest, slots, distances.T)
    return nearest.T
