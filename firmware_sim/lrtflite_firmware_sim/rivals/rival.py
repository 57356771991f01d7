"""The contract of a rival: a value that a session turns into the next one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lrtflite.bundle.training import Training
from lrtflite.session.session import Session

Floats = NDArray[np.float32]
SlotArray = NDArray[np.int32]


@dataclass(frozen=True)
class Outcome:
    """The steps of a session, and the mean loss and accuracy of the last epoch, if it has any."""

    steps: int = 0
    loss: float | None = None
    accuracy: float | None = None


class Rival(ABC):
    """A learner on latents (n, F). It never changes: `learn` returns another one.

    The first line of a subclass's docstring is its help text on the command line.
    """

    # Rule that decides which latents are kept; results name it as the policy.
    policy: ClassVar[str]
    # False if the rival keeps every latent, whatever the replay size.
    has_capacity: ClassVar[bool]

    @classmethod
    @abstractmethod
    def start(cls, *, classes: int, features: int, capacity: int) -> Rival:
        """Return a rival that has learned nothing, for latents of `features` values."""

    @classmethod
    def training(cls, features: int) -> Training | None:
        """Return the default training; None for a rival that does not train."""
        return None

    @classmethod
    def least_capacity(cls, classes: Sequence[int]) -> int:
        """Return the least replay size for a stream with so many classes in each session."""
        return 0

    @abstractmethod
    def learn(
        self,
        latents: Floats,
        slots: SlotArray,
        training: Training | None,
        *,
        rng: np.random.Generator,
        session: Session,
    ) -> tuple[Rival, Outcome]:
        """Return the rival after a session with these patterns."""

    @abstractmethod
    def probabilities(self, latents: Floats) -> Floats:
        """Return probabilities (n, classes) float32; 0 for slots that have not learned."""

    @property
    @abstractmethod
    def learned(self) -> NDArray[np.bool_]:
        """Return (classes,): true for slots that have learned."""

    @property
    @abstractmethod
    def capacity(self) -> int:
        """Return the number of latents that may be kept."""

    @property
    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything that a device would have to save."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of latents that are kept."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Return the number of bytes of the latents that are kept, and of their slots."""
