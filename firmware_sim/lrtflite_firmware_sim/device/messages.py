"""Messages between the simulator and the device, pickled, over a pair of pipes.

Every request gets one reply. `Learn` opens a session. Each `NextFrame` that follows is acknowledged
as soon as the device has received it. `EndOfFrames` is answered by any number of `Progress` and
then the `SessionReport`. `Failed` may replace any reply, and ends a session.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.answers.prediction import Prediction
from lrtflite.bundle.training import Training
from lrtflite.options import LearnerOptions


@dataclass(frozen=True)
class Open:
    """Open a learner, or a `rival` in the place of its head; answered by `Vitals`."""

    bundle: str
    state: str
    options: LearnerOptions
    rival: str | None = None


@dataclass(frozen=True)
class Learn:
    """Begin a session with one label per frame; `training` is None if nothing trains."""

    labels: tuple[str, ...]
    training: Training | None
    diagnose: bool = False


@dataclass(frozen=True)
class LearnStored:
    """A session on `rows` of a file of latents, one label each; answered like `EndOfFrames`."""

    file: str
    rows: NDArray[np.int64]
    labels: tuple[str, ...]
    training: Training | None
    diagnose: bool = False


@dataclass(frozen=True)
class NextFrame:
    """One frame of a session, (size, size, 3) uint8 RGB."""

    pixels: NDArray[np.uint8]


@dataclass(frozen=True)
class EndOfFrames:
    """End of the recording; the device trains and commits."""


@dataclass(frozen=True)
class Extract:
    """Request for the latents (1, ...) of one frame."""

    pixels: NDArray[np.uint8]


@dataclass(frozen=True)
class Answer:
    """Request for `Answers` to latents (n, ...) of the bundle's dtype."""

    latents: NDArray[Any]


@dataclass(frozen=True)
class Recognise:
    """Request for `Answers` to one frame."""

    pixels: NDArray[np.uint8]


@dataclass(frozen=True)
class Predict:
    """Request for the likeliest labels of one frame; answered by `Predicted`."""

    pixels: NDArray[np.uint8]


@dataclass(frozen=True)
class Predicted:
    """The likeliest labels of one frame, and the milliseconds until the answer."""

    milliseconds: float
    top: tuple[Prediction, ...]


@dataclass(frozen=True)
class Ask:
    """Request for the current state of the device; answered by `Vitals`."""


@dataclass(frozen=True)
class Vitals:
    """Current state of the device; `modules` are the top-level packages that it has imported.

    `parameter_bytes` is the size of the tensors in the head's state; None for a rival.
    """

    runtime: str
    runtime_version: str
    labels: tuple[str | None, ...]
    learned: tuple[str, ...]
    replay_patterns: int
    replay_capacity: int
    replay_bytes: int
    parameter_bytes: int | None
    policy: str
    peak_ram_mb: float
    modules: frozenset[str]


@dataclass(frozen=True)
class Acknowledged:
    """Reply to a `NextFrame`: the next message may come."""


@dataclass(frozen=True)
class Failed:
    """An error of the device; `kind` names a class of `lrtflite.errors`, or is "" for a bug."""

    kind: str
    message: str
    trace: str = ""


def send(pipe: IO[bytes], message: Any) -> None:
    """Write one message."""
    pickle.dump(message, pipe, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.flush()


def receive(pipe: IO[bytes]) -> Any:
    """Return the next message; raise EOFError if the other side has closed the pipe."""
    try:
        return pickle.load(pipe)
    except pickle.UnpicklingError as error:
        raise EOFError("the pipe ended inside a message") from error
