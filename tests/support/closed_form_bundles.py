"""Make small bundles of the closed forms: `python tests/support/closed_form_bundles.py FOLDER`.

A process of its own: TensorFlow and a TFLite runtime in one process can crash.
"""

from __future__ import annotations

import sys
from pathlib import Path

STRATEGIES = ("lda", "ncm")
# So many features has the average of `conv5_6/sep` at alpha 1 / 16.
FEATURES, SLOTS, SIZE = 64, 6, 32


def main(folder: Path) -> None:
    """Write FOLDER/lda and FOLDER/ncm."""
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


if __name__ == "__main__":
    main(Path(sys.argv[1]))
