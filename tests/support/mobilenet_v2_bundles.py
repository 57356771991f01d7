"""Make small bundles of MobileNetV2: `python tests/support/mobilenet_v2_bundles.py FOLDER`.

A process of its own: TensorFlow and a TFLite runtime in one process can crash.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

SLOTS, SIZE = 6, 32
# The last layer by SGD; signed latents in closed form, below which moments adapt; a trunk that
# begins with a residual block.
BUNDLES: dict[str, dict[str, Any]] = {
    "last": {"replay_layer": "pool", "strategy": "lwf"},
    "signed": {
        "replay_layer": "block_15",
        "strategy": "lda",
        "pooled": True,
        "adapt_moments": True,
    },
    "deep": {"replay_layer": "block_14", "batch_size": 8, "new_per_batch": 4},
}


def main(folder: Path) -> None:
    """Write FOLDER/last and so on."""
    import tf_keras as keras

    from keras_reference import settle
    from lrtflite.host.mobilenet import scale_frames
    from lrtflite.host.mobilenet_v2 import mobilenet_v2
    from lrtflite.host.network import Network
    from lrtflite.networks.mobilenet_v2 import MOBILENET_V2
    from lrtflite_converters.conversion.writing import make_bundle
    from lrtflite_converters.request.options import Conversion

    keras.utils.set_random_seed(0)
    model = mobilenet_v2(alpha=0.1, input_size=SIZE, classes=0)
    settle(model, seed=0)
    network = Network(MOBILENET_V2, model, scale_frames, "a test")
    for name, given in BUNDLES.items():
        options = Conversion(architecture=MOBILENET_V2, classes=SLOTS, replay_size=20, **given)
        make_bundle(network, folder / name, options=options)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
