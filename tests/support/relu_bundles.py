"""Make small bundles of a MobileNetV1 with ReLU: `python tests/support/relu_bundles.py FOLDER`.

FOLDER/expected.npz has frames and what Keras makes of them at the replay layer. A process of its
own: TensorFlow and a TFLite runtime in one process can crash.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from quantised_bundles import SIZE, SLOTS, waves

LAYER = "conv6/sep"
# Latents as they are, and as int8.
BUNDLES = ("float", "int8")


def main(folder: Path) -> None:
    """Write FOLDER/float, FOLDER/int8 and FOLDER/expected.npz."""
    from keras_reference import extracted, small_network
    from lrtflite.host.training.renorm_schedule import RenormLimits, set_limits
    from lrtflite.host.weights import build_mobilenet_v1, write_npz
    from lrtflite_converters.conversion.writing import make_bundle
    from lrtflite_converters.quantise.calibration import Calibration
    from lrtflite_converters.quantise.options import QuantiseOptions
    from lrtflite_converters.request.options import Conversion

    trained = small_network(seed=0, input_size=SIZE, alpha=1 / 16, activation="relu")
    # Moments that do not fit would let values grow from unit to unit, without a limit of 6.
    set_limits(trained.model, RenormLimits(r_max=1.0, d_max=0.0, momentum=0.0))
    trained.model(trained.scale(waves(32, seed=3)), training=True)
    norm = trained.layer(f"{LAYER}/brn")
    norm.gamma.assign(4 * norm.gamma)  # so that many latents are above 6
    frames = waves(8, seed=5)
    np.savez(folder / "expected.npz", frames=frames, latents=extracted(trained, LAYER, frames))
    write_npz(trained.model, folder / "own.npz")
    with np.load(folder / "own.npz") as file:
        arrays = {name: file[name] for name in file.files if name != "activation"}
    np.savez(folder / "theirs.npz", **arrays)
    network = build_mobilenet_v1(
        weights=str(folder / "theirs.npz"), alpha=None, input_size=SIZE, activation="relu"
    )
    calibration = Calibration("waves", waves(24, seed=1), np.arange(24) % 3)
    for name in BUNDLES:
        options = Conversion(
            replay_layer=LAYER,
            strategy="cwr",
            classes=SLOTS,
            batch_size=12,
            new_per_batch=4,
            replay_size=20,
            quantise=QuantiseOptions("int8", "waves") if name == "int8" else None,
        )
        make_bundle(network, folder / name, options=options, calibration=calibration)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
