"""What the simulator and the device say to each other, pickled, over a pair of pipes.

Every request gets one reply. `Learn` opens a session: each `Frame` that follows is acknowledged as
soon as the device has taken it in, and `EndOfFrames` is answered by any number of `Progress` and
then the `SessionReport`. In place of any reply there may be a `Failed`; it ends a session.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.learner_options import LearnerOptions
from lrtflite.prediction import Prediction
from lrtflite.training import Training


@dataclass(frozen=True)
class Open:
    """Open a learner; answered by `Vitals`."""

    bundle: str
    state: str
    options: LearnerOptions


@dataclass(frozen=True)
class Learn:
    """Begin a session with one label per frame."""

    labels: tuple[str, ...]
    training: Training
    diagnose: bool = False


@dataclass(frozen=True)
class Frame:
    """One frame of a session, (size, size, 3) uint8 RGB."""

    pixels: NDArray[np.uint8]


@dataclass(frozen=True)
class EndOfFrames:
    """The camera stops; the device trains and commits."""


@dataclass(frozen=True)
class Extract:
    """Answered by the latents (1, ...) of one frame."""

    pixels: NDArray[np.uint8]


@dataclass(frozen=True)
class Probabilities:
    """Answered by (n, slots) float32 for latents (n, ...) of the bundle's dtype."""

    latents: NDArray[Any]


@dataclass(frozen=True)
class Recognise:
    """Answered by (1, slots) float32 for one frame."""

    pixels: NDArray[np.uint8]


@dataclass(frozen=True)
class Predict:
    """Answered by `Predicted`, for one frame."""

    pixels: NDArray[np.uint8]


@dataclass(frozen=True)
class Predicted:
    milliseconds: float
    top: tuple[Prediction, ...]


@dataclass(frozen=True)
class Ask:
    """Answered by `Vitals`."""


@dataclass(frozen=True)
class Vitals:
    """How the device is. `modules` are the top-level names of all that it has imported."""

    runtime: str
    runtime_version: str
    labels: tuple[str | None, ...]
    learned: tuple[str, ...]
    replay_patterns: int
    replay_capacity: int
    replay_bytes: int
    policy: str
    peak_ram_mb: float
    modules: frozenset[str]


@dataclass(frozen=True)
class Acknowledged:
    """Go on."""


@dataclass(frozen=True)
class Failed:
    """An error of the device. `kind` names a class of `lrtflite.errors`, or is empty for a bug."""

    kind: str
    message: str
    trace: str = ""


def send(pipe: IO[bytes], message: Any) -> None:
    pickle.dump(message, pipe, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.flush()


def receive(pipe: IO[bytes]) -> Any:
    """The next message. EOFError when the other side is gone, also in the middle of one."""
    try:
        return pickle.load(pipe)
    except pickle.UnpicklingError as error:
        raise EOFError("the pipe ended inside a message") from error
