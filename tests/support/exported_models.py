"""Export the states of several bundles: `python tests/support/exported_models.py FOLDER`.

FOLDER/NAME is a bundle, FOLDER/NAME-state its state, and FOLDER/NAME.npy the frames to calibrate
with; FOLDER/NAME-float32/model.tflite and FOLDER/NAME-int8/model.tflite are written.
A process of its own: TensorFlow and a TFLite runtime in one process can crash.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from lrtflite.bundle.bundle import Bundle
from lrtflite_converters.export.making import made_model
from lrtflite_converters.export.request import FLOAT, INT8, read_learned


def main(folder: Path) -> None:
    for state in sorted(folder.glob("*-state")):
        name = state.name.removesuffix("-state")
        bundle, frames = Bundle.open(folder / name), np.load(folder / f"{name}.npy")
        learned = read_learned(bundle, state)
        for numbers, calibration in ((FLOAT, None), (INT8, frames)):
            made = folder / f"{name}-{numbers}"
            made.mkdir()
            # In this process, because `export_model` would load TensorFlow again for each.
            header, content = made_model(bundle, learned, name="model", frames=calibration)
            (made / "model.tflite").write_bytes(content)
            (made / "labels.txt").write_text("".join(f"{x}\n" for x in header["labels"]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
