"""Make small bundles of networks of residual blocks.

    python tests/support/mobilenet_v2_bundles.py FOLDER

A process of its own: TensorFlow and a TFLite runtime in one process can crash.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

SLOTS, SIZE = 6, 32
# The last layer by SGD; signed latents in closed form, below which moments adapt; a trunk that
# begins with a residual block, also with ReLU; one of EfficientNet-Lite0, with 5x5 kernels.
BUNDLES: dict[str, dict[str, Any]] = {
    "last": {"replay_layer": "pool", "strategy": "lwf"},
    "signed": {
        "replay_layer": "block_15",
        "strategy": "lda",
        "pooled": True,
        "adapt_moments": True,
    },
    "deep": {"replay_layer": "block_14", "batch_size": 8, "new_per_batch": 4},
    "relu": {
        "activation": "relu",
        "replay_layer": "block_15",
        "batch_size": 8,
        "new_per_batch": 4,
    },
    "lite0": {
        "network": "efficientnet_lite0",
        "replay_layer": "block_13",
        "batch_size": 8,
        "new_per_batch": 4,
    },
}


def main(folder: Path) -> None:
    """Write FOLDER/last and so on."""
    import tf_keras as keras

    from keras_reference import settle
    from lrtflite.host.family import find_family
    from lrtflite.host.network import Network
    from lrtflite_converters.conversion.writing import make_bundle
    from lrtflite_converters.request.options import Conversion

    for name, given in BUNDLES.items():
        words = {"network": "mobilenet_v2", **given}
        family = find_family(words.pop("network"))
        keras.utils.set_random_seed(0)
        activation = words.pop("activation", "relu6")
        model = family.build(alpha=0.1, input_size=SIZE, classes=0, activation=activation)
        settle(model, seed=0, bounded=activation != "relu")
        network = Network(family.architecture, model, family.scale, "a test")
        options = Conversion(
            architecture=family.architecture, classes=SLOTS, replay_size=20, **words
        )
        make_bundle(network, folder / name, options=options)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
