"""Make a small bundle of each strategy: `python tests/support/strategy_bundles.py FOLDER`.

A process of its own: TensorFlow and a TFLite runtime in one process can crash.
"""

from __future__ import annotations

import sys
from pathlib import Path

SLOTS, SIZE = 6, 32
LAYERS = {"last": "pool6", "deep": "conv5_6/dw"}
# Strategies at each place; the default ones, and closed forms without a trunk, have tests of their
# own.
BUNDLES = {
    "last": ("ewc", "lwf", "naive", "dslda"),
    "deep": ("ar1", "ewc", "lwf", "naive", "lda"),
}
NAMES = tuple(f"{place}-{strategy}" for place, names in BUNDLES.items() for strategy in names)
# Another rate in the first session, and everything else of the paper.
PAPER = ("deep-paper",)


def main(folder: Path) -> None:
    """Write FOLDER/last-ewc and so on."""
    from keras_reference import small_network
    from lrtflite_converters.conversion.writing import make_bundle
    from lrtflite_converters.request.options import Conversion

    network = small_network(seed=0, input_size=SIZE, alpha=1 / 16)
    for name in (*NAMES, *PAPER):
        place, _, strategy = name.partition("-")
        options = Conversion(
            replay_layer=LAYERS[place],
            strategy="ar1" if name in PAPER else strategy,
            preset="paper" if name in PAPER else None,
            classes=SLOTS,
            batch_size=12,
            new_per_batch=4,
            replay_size=20,
        )
        make_bundle(network, folder / name, options=options)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
