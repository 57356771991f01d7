"""An unfinished training on disk: one `.npz` beside the model that it will become."""

from __future__ import annotations

import json
import zipfile
import zlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.errors import ModelError
from lrtflite.host.model_file import first_line, writing_model
from lrtflite.whole_file import replacing


@dataclass(frozen=True)
class Epoch:
    """What one epoch came to; `validation` is None without early stopping."""

    epoch: int
    loss: float
    accuracy: float
    held_out: float
    validation: float | None


@dataclass
class TrainState:
    """Where a training stands: `step` steps of epoch `epoch` (both from 0) are done.

    `identity` says which training it is: data set, frames and options. `loss_sum` and `hits`
    belong to the epoch under way. `weights` and `velocities` are filled when it is saved, `best`
    holds the weights of the best epoch so far (only with early stopping).
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
    """Where the unfinished training of model `out` is kept."""
    return out.with_name(f"{out.name}.checkpoint.npz")


def save_checkpoint(state: TrainState, path: Path) -> None:
    """Write `state`; `path` holds the old checkpoint or the new one, never half of it."""
    record = asdict(state)
    arrays = {
        f"{group}/{number}": array
        for group in _ARRAYS
        for number, array in enumerate(record.pop(group))
    }
    with writing_model(path), replacing(path) as temporary:
        np.savez(temporary, record=np.asarray(json.dumps(record)), **arrays)


def load_checkpoint(path: Path) -> TrainState:
    """Read what `save_checkpoint` wrote."""
    if not path.is_file():
        raise ModelError(
            f"Expected an unfinished training to resume, got no {path}; run without --resume"
        )
    try:
        # Opened here, because numpy leaves a file open that it cannot read.
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            record = json.loads(str(file["record"]))
            for group in _ARRAYS:
                count = sum(name.startswith(f"{group}/") for name in file.files)
                record[group] = [file[f"{group}/{number}"] for number in range(count)]
        record["history"] = [Epoch(**epoch) for epoch in record["history"]]
        return TrainState(**record)
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        raise ModelError(
            f"Expected an unfinished training in {path}, got a file that cannot be read "
            f"({first_line(error)}); delete it and start again"
        ) from error


def check_identity(state: TrainState, identity: dict[str, Any], path: Path) -> None:
    """Refuse to resume another training than the one that was interrupted."""
    for key, value in identity.items():
        if state.identity.get(key) != value:
            raise ModelError(
                f"Expected {key} {state.identity.get(key)!r} as in {path}, got {value!r}; "
                "resume with the options of the first run, or delete that file"
            )
