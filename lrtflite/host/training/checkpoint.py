"""An unfinished training run on disk: one `.npz` next to the model that it will produce."""

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
from lrtflite.files.atomic import replacing
from lrtflite.host.model_file import first_line, writing_model


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
            f"Expected the checkpoint of an unfinished training run, got no {path}; "
            "run without --resume"
        )
    try:
        # Opened here, because numpy does not close a file that it fails to read.
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            record = json.loads(str(file["record"]))
            for group in _ARRAYS:
                count = sum(name.startswith(f"{group}/") for name in file.files)
                record[group] = [file[f"{group}/{number}"] for number in range(count)]
        record["history"] = [Epoch(**epoch) for epoch in record["history"]]
        return TrainState(**record)
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        raise ModelError(
            f"Expected the checkpoint of an unfinished training run in {path}, got a file that "
            f"cannot be read ({first_line(error)}); delete it and start again without --resume"
        ) from error


def check_identity(state: TrainState, identity: dict[str, Any], path: Path) -> None:
    """Raise ModelError if `state` belongs to a run with other data or options."""
    for key, value in identity.items():
        if state.identity.get(key) != value:
            raise ModelError(
                f"Expected {key} {state.identity.get(key)!r} as in {path}, got {value!r}; "
                "resume with the options of the first run, or delete the checkpoint"
            )
