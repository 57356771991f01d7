"""An unfinished training run on disk: one `.npz` next to the model that it will produce."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.arguments import shown
from lrtflite.errors import ModelError
from lrtflite.files.atomic import replacing
from lrtflite.files.keras import first_line, read_given
from lrtflite.files.npz import read_npz
from lrtflite.files.zip import MALFORMED
from lrtflite.host.model_file import writing_model

# Maximum number of bytes in a checkpoint: three times the weights of the widest network.
MAX_BYTES = 1 << 30


@dataclass(frozen=True)
class Epoch:
    """Figures of one epoch (from 1); `validation` is None without early stopping."""

    epoch: int
    loss: float
    accuracy: float
    held_out: float
    validation: float | None


@dataclass
class TrainState:
    """The progress of a training run: `step` steps of epoch `epoch` (both from 0) are done.

    `identity` holds the data set, a checksum of the frames, and the options. `loss_sum` and `hits`
    are sums over the current epoch. `weights` and `velocities` are filled in when the state is
    saved. `best` holds the weights of the best epoch so far (only with early stopping).
    """

    identity: dict[str, Any] = field(default_factory=dict)
    epoch: int = 0
    step: int = 0
    loss_sum: float = 0.0
    hits: int = 0
    best_epoch: int = -1
    history: list[Epoch] = field(default_factory=list)
    weights: list[NDArray[Any]] = field(default_factory=list)
    velocities: list[NDArray[Any]] = field(default_factory=list)
    best: list[NDArray[Any]] = field(default_factory=list)


_ARRAYS = ("weights", "velocities", "best")


def checkpoint_path(out: Path) -> Path:
    """Return the checkpoint file of the training run that will produce `out`."""
    return out.with_name(f"{out.name}.checkpoint.npz")


def save_checkpoint(state: TrainState, path: Path) -> None:
    """Write `state` to `path`, which always holds a complete checkpoint, old or new."""
    record = asdict(state)
    arrays = {
        f"{group}/{number}": array
        for group in _ARRAYS
        for number, array in enumerate(record.pop(group))
    }
    with writing_model(path), replacing(path) as temporary:
        np.savez(temporary, record=np.asarray(json.dumps(record)), **arrays)


def load_checkpoint(path: Path) -> TrainState:
    """Return the state that `save_checkpoint` wrote."""
    if not path.is_file():
        raise ModelError(
            f"Expected the checkpoint of an unfinished training run, got no {path}",
            "run without --resume",
        )
    try:
        return _parse(read_given(path, most=MAX_BYTES))
    except MALFORMED as error:
        raise ModelError(
            f"Expected the checkpoint of an unfinished training run in {path}, got a file that "
            f"cannot be read ({first_line(error)})",
            "delete it and start again without --resume",
        ) from error


def _parse(content: bytes) -> TrainState:
    arrays = read_npz(content, most=MAX_BYTES)
    record = json.loads(str(arrays.pop("record")))
    for group in _ARRAYS:
        count = sum(name.startswith(f"{group}/") for name in arrays)
        record[group] = [arrays[f"{group}/{number}"] for number in range(count)]
    record["history"] = [Epoch(**epoch) for epoch in record["history"]]
    state = TrainState(**record)
    _check(state)
    return state


def _check(state: TrainState) -> None:
    """Raise ValueError for values from which training cannot resume."""
    epochs = state.history
    whole = [state.epoch, state.step, state.hits, state.best_epoch, *(e.epoch for e in epochs)]
    real = [state.loss_sum, *(x for e in epochs for x in (e.loss, e.accuracy, e.held_out))]
    real += [e.validation for e in epochs if e.validation is not None]
    if not all(type(n) is int for n in whole) or not all(type(x) in (int, float) for x in real):
        raise ValueError("a field that is not a number")
    if min(state.step, state.hits) < 0 or not math.isfinite(state.loss_sum):
        raise ValueError(f"step {state.step} with a loss of {state.loss_sum}")
    if len(epochs) != state.epoch or not -1 <= state.best_epoch < state.epoch:
        raise ValueError(f"{len(epochs)} epochs of {state.epoch}")
    if state.best_epoch >= 0 and epochs[state.best_epoch].validation is None:
        raise ValueError("a best epoch without validation")
    if not isinstance(state.identity, dict):
        raise ValueError("no identity")


def check_identity(state: TrainState, identity: dict[str, Any], path: Path) -> None:
    """Raise ModelError if `state` belongs to a run with other data or options."""
    for key, value in identity.items():
        if state.identity.get(key) != value:
            raise ModelError(
                f"Expected {key} {shown(state.identity.get(key))} as in {path}, got {value!r}",
                "resume with the options of the first run, or delete the checkpoint",
            )
