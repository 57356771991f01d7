"""Make small bundles to export: `python tests/support/export_bundles.py FOLDER`.

A process of its own: TensorFlow and a TFLite runtime in one process can crash.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

SLOTS, SIZE = 6, 32
# Options of each bundle: those that no other test converts.
BUNDLES: dict[str, dict[str, Any]] = {
    "deep-lda": {"replay_layer": "conv5_6/dw", "strategy": "lda"},
    "two": {"replay_layer": "pool6", "and_layer": "conv5_6/sep", "crops": True},
    "adapts": {"replay_layer": "conv5_6/dw", "adapt_moments": True},
}


def main(folder: Path) -> None:
    """Write FOLDER/deep-lda and so on; other tests verify bundles like these."""
    from keras_reference import small_network
    from lrtflite_converters.conversion import writing as export
    from lrtflite_converters.request.options import Conversion

    export.installed_runtimes = lambda: []
    network = small_network(seed=0, input_size=SIZE, alpha=1 / 16)
    for name, chosen in BUNDLES.items():
        options = Conversion(
            classes=SLOTS, batch_size=12, new_per_batch=4, replay_size=20, **chosen
        )
        export.make_bundle(network, folder / name, options=options)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
