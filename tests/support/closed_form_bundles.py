"""Make small bundles of the closed forms: `python tests/support/closed_form_bundles.py FOLDER`.

A process of its own: TensorFlow and a TFLite runtime in one process can crash.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

STRATEGIES = ("lda", "ncm")
# So many features has the average of `conv5_6/sep` at alpha 1 / 16.
FEATURES, SLOTS, SIZE = 64, 6, 32


def cloud(kind: int, count: int = 20, *, seed: int = 0) -> np.ndarray:
    """(count, F) float32 of one class; all classes have most in common."""
    common = np.random.default_rng(7).exponential(1, FEATURES)
    own = np.random.default_rng(1000 + kind).exponential(0.5, FEATURES)
    noise = np.random.default_rng((seed, kind)).normal(0, 0.3, (count, FEATURES))
    return np.clip(common + own + noise, 0, 6).astype("f")


def main(folder: Path) -> None:
    """Write FOLDER/lda and FOLDER/ncm, and FOLDER/two with two layers and crops."""
    from keras_reference import small_network
    from lrtflite_converters.conversion.writing import make_bundle
    from lrtflite_converters.request.options import Conversion

    network = small_network(seed=0, input_size=SIZE, alpha=1 / 16)
    for strategy in STRATEGIES:
        options = Conversion(
            replay_layer="conv5_6/sep",
            pooled=True,
            strategy=strategy,
            classes=SLOTS,
            replay_size=20,
        )
        make_bundle(network, folder / strategy, options=options)
    two = Conversion(
        replay_layer="pool6", and_layer="conv5_6/sep", crops=True, classes=SLOTS, replay_size=20
    )
    make_bundle(network, folder / "two", options=two)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
