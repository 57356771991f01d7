"""Check what is to be exported before TensorFlow is loaded: bundle, state, files and frames."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.bundle.bundle import Bundle
from lrtflite.errors import InputError, LrtfliteError, StateError
from lrtflite.files.atomic import check_writable, writing
from lrtflite.state.folder import read_state
from lrtflite.state.form import StateForm
from lrtflite.state.initial import read_initial
from lrtflite.state.reading import State, read_state_file

LABELS_FILE = "labels.txt"
FLOAT, INT8 = "float32", "int8"
MODES = (INT8,)
# Number of frames that ranges are measured on; TensorFlow's guide advises 100 to 500.
CALIBRATION_FRAMES = 100
# Names of arrays on the way to the process that makes the model; a state has other names.
FRAMES, LEARNED = "frames", "learned"


@dataclass(frozen=True)
class Files:
    """The files to write: the model, and its labels next to it."""

    model: Path
    labels_name: str = LABELS_FILE

    @property
    def labels(self) -> Path:
        return self.model.parent / self.labels_name

    def check(self, *, replace: bool) -> None:
        """Raise LrtfliteError if a file exists that may not be replaced, or cannot be written."""
        if self.model.name == self.labels_name:
            raise LrtfliteError(
                f"Expected a name for the model, got {self.model}, which is where its labels go",
                "choose another --out",
            )
        if self.labels.exists() and not self.model.exists() and replace:
            others = sorted(path.name for path in self.model.parent.glob("*.tflite"))
            if others:
                raise LrtfliteError(
                    f"Expected a folder without other exports, got {self.labels} beside "
                    f"{others[0]}, whose labels it may have",
                    "choose an --out in another folder",
                )
        for path in (self.model, self.labels):
            with writing(path):
                check_writable(path)
            if path.exists() and not path.is_file():
                raise LrtfliteError(
                    f"Expected a file to write, got the device or pipe {path}",
                    "choose another --out",
                )
            if path.exists() and not replace:
                raise LrtfliteError(
                    f"Expected a new file, got {path}, which exists",
                    "choose an --out in another folder, or give --replace to overwrite it",
                )


@dataclass(frozen=True)
class LearnedClasses:
    """The tensors of both models after learning, and the learned slots with their labels."""

    tensors: Mapping[str, NDArray[Any]]
    slots: tuple[int, ...]
    labels: tuple[str, ...]
    sessions: int

    @classmethod
    def of(
        cls,
        tensors: Mapping[str, NDArray[Any]],
        learned: Sequence[bool],
        labels: Sequence[str | None],
        *,
        sessions: int,
    ) -> LearnedClasses:
        slots = tuple(slot for slot, has in enumerate(learned) if has)
        names = tuple(labels[slot] or f"class {slot}" for slot in slots)
        if not slots:
            raise InputError(
                "Expected a state that has learned at least one class, got one that has learned "
                "nothing yet",
                "teach it first, or give another STATE",
            )
        return cls(tensors, slots, names, sessions)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all as arrays; LEARNED is JSON."""
        facts = {"slots": self.slots, "labels": self.labels, "sessions": self.sessions}
        return {**self.tensors, LEARNED: np.frombuffer(json.dumps(facts).encode(), np.uint8)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> LearnedClasses:
        """Return what `to_arrays` returned as arrays."""
        facts = json.loads(arrays[LEARNED].tobytes())
        tensors = {name: values for name, values in arrays.items() if name != LEARNED}
        return cls(tensors, tuple(facts["slots"]), tuple(facts["labels"]), facts["sessions"])


def read_learned(bundle: Bundle, path: Path | None) -> LearnedClasses | None:
    """Read a state folder or file; without a path, the bundle's initial state.

    None is a bundle without one, whose models may have learned before they were converted.
    """
    if path is None:
        state = read_initial(bundle)
    else:
        state = read_state_file(path) if path.is_file() else read_state(path)
        # No check of the arrays: that needs the signatures, which only TensorFlow can read.
        StateForm.of(bundle, {}, {}).check_meta(state.meta)
    return None if state is None else _learned(state)


def check_mode(mode: str | None, dataset: str | None) -> None:
    """Raise InputError for an unknown mode, or for one without its data set."""
    if mode is not None and mode not in MODES:
        raise InputError(
            f"Expected {' or '.join(MODES)} for --quantize, got {mode!r}", "choose one of these"
        )
    if mode is not None and dataset is None:
        raise InputError(
            f"Expected a data set to calibrate with for --quantize {mode}, got none",
            "give --calibrate folder:PICTURES",
        )
    if mode is None and dataset is not None:
        raise InputError(
            "Expected --quantize int8 with --calibrate, got --calibrate alone",
            "give both or neither",
        )


def check_float(bundle: Bundle) -> None:
    """Raise InputError for a bundle that was quantised when it was converted."""
    if bundle.manifest.latent_dtype == INT8:
        raise InputError(
            "Expected a bundle in float for --quantize int8, got one whose features are int8 "
            "already",
            "leave out --quantize",
        )


def _learned(state: State) -> LearnedClasses:
    meta = state.meta
    if len(meta.learned) != len(meta.labels):
        raise StateError("Expected as many labels as slots in the state", "restore it from a copy")
    return LearnedClasses.of(state.arrays, meta.learned, meta.labels, sessions=meta.sessions)
