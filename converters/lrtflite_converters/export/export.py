"""Export what a learner has learned as one plain TFLite model, and its labels."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import numpy as np
from numpy.typing import NDArray

from lrtflite.bundle.bundle import Bundle
from lrtflite.files.atomic import replacing, writing
from lrtflite.verification.child import run_child
from lrtflite.verification.limits import TENSORFLOW_MB, trial_limits
from lrtflite.verification.trial import packed
from lrtflite_converters.export.request import FRAMES, Files, LearnedClasses

Stage = Callable[[str], None]


@dataclass(frozen=True)
class Exported:
    """The files that were written, and the labels of the model's outputs.

    `numbers` is the kind of the weights: float32, int8, or float32 above int8 features.
    """

    model: Path
    labels_file: Path
    labels: tuple[str, ...]
    bytes: int
    numbers: str


def export_model(
    bundle: Bundle,
    learned: LearnedClasses | None,
    files: Files,
    *,
    frames: NDArray[np.uint8] | None = None,
    side: int | None = None,
    stage: Stage = lambda text: None,
) -> Exported:
    """Write the model of a bundle with what was learned, in int8 if there are `frames`.

    `side` is the side of the frames that the model takes, by default that of the bundle.
    `learned` is None for a bundle without a state, whose models have the values from conversion.
    A child process makes the model, because TensorFlow runs the bundle's models for it.
    """
    stage("joining both models" + ("" if frames is None else f", in int8 by {len(frames)} frames"))
    arrays = {} if learned is None else learned.to_arrays()
    if frames is not None:
        arrays[FRAMES] = frames
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    answer = run_child(
        "lrtflite_converters.export.making",
        *(str(bundle.path), files.model.stem, str(side or bundle.manifest.input_size)),
        what=f"an export of {bundle.path}",
        limits=trial_limits(bundle.manifest.measured, more_mb=TENSORFLOW_MB),
        given=packed(bundle) + buffer.getvalue(),
    )
    header, _, content = answer.partition(b"\n")
    made = json.loads(header)
    labels = "".join(f"{label}\n" for label in made["labels"])
    with writing(files.model), replacing(files.labels) as text, replacing(files.model) as model:
        text.write_bytes(labels.encode())
        model.write_bytes(content)
    return Exported(files.model, files.labels, tuple(made["labels"]), len(content), made["numbers"])
