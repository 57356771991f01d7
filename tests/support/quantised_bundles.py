"""Make small int8 bundles: `python tests/support/quantised_bundles.py FOLDER`.

A process of its own: TensorFlow and a TFLite runtime in one process can crash.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

SLOTS, SIZE = 6, 32
# Options of each bundle.
BUNDLES: dict[str, dict[str, Any]] = {
    "closed": {"replay_layer": "pool6", "strategy": "lda"},
    "deep": {"replay_layer": "conv5_6/sep", "strategy": "ar1free"},
    "two": {"replay_layer": "pool6", "and_layer": "conv5_6/sep", "crops": True},
}


def waves(count: int, *, seed: int) -> np.ndarray:
    """Return frames (count, SIZE, SIZE, 3) uint8 of smooth coloured waves."""
    rng = np.random.default_rng(seed)
    grid = np.linspace(0, 2 * np.pi, SIZE)
    turns, phases = rng.uniform(0.3, 4, (count, 3, 2)), rng.uniform(0, 6, (count, 3, 1, 1))
    angle = turns[..., :1, None] * grid[:, None] + turns[..., 1:, None] * grid + phases
    return (127.5 + 127.5 * np.sin(angle)).astype(np.uint8).transpose(0, 2, 3, 1)


def main(folder: Path) -> None:
    """Write FOLDER/last and so on."""
    from keras_reference import small_network
    from lrtflite_converters.conversion.writing import make_bundle
    from lrtflite_converters.quantise.calibration import Calibration
    from lrtflite_converters.quantise.options import QuantiseOptions
    from lrtflite_converters.request.options import Conversion

    network = small_network(seed=0, input_size=SIZE, alpha=1 / 16)
    calibration = Calibration("waves", waves(24, seed=1), np.arange(24) % 3)
    for name, chosen in BUNDLES.items():
        options = Conversion(
            **chosen,
            classes=SLOTS,
            batch_size=12,
            new_per_batch=4,
            replay_size=20,
            quantise=QuantiseOptions("int8", "waves"),
        )
        make_bundle(network, folder / name, options=options, calibration=calibration)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
