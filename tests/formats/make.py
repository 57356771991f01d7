"""Make a bundle and a state of the current formats: `python tests/formats/make.py` in a clone.

Run it when the number of a format changes. Commit the new files, and keep the old ones.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
TEACH = """
import sys
import numpy as np
import lrtflite.state.writing
import lrtflite.state.history
from lrtflite import Learner
# Files of tensors, as a larger head and a longer history have.
lrtflite.state.writing.MAX_INLINE = lrtflite.state.writing.MAX_INLINE_HISTORY = 0
lrtflite.state.history.BLOCK = 2  # five sessions, of which two are folded
bundle, state = sys.argv[1:]
with Learner.open(bundle, state, device="kitchen") as learner:
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (2, 5, 32, 32, 3)).astype(np.uint8)
    for _ in range(5):
        learner.learn(np.concatenate(frames), ["mug"] * 5 + ["hat"] * 5)
"""
ABOUT = {"name": "pinned", "version": "1.0", "created": "2026-11-18", "replaces": "0.9"}


def main() -> None:
    sys.path.insert(0, str(HERE.parent / "support"))
    from keras_reference import small_network
    from lrtflite.bundle.manifest import BUNDLE_FORMAT
    from lrtflite.state.record import STATE_FORMAT
    from lrtflite_converters.conversion.writing import make_bundle
    from lrtflite_converters.request.options import Conversion

    network = small_network(seed=0, input_size=32, alpha=1 / 16)
    options = Conversion(
        replay_layer="conv6/dw",
        classes=4,
        batch_size=8,
        new_per_batch=4,
        replay_size=6,
        adapt_moments=True,
    )
    bundle, state = HERE / f"bundle-{BUNDLE_FORMAT}", HERE / f"state-{STATE_FORMAT}"
    if bundle.exists():
        print(f"{bundle} stays; remove it to make it again")
    else:
        make_bundle(network, bundle, options=options)
    # Costs measured on one machine are irrelevant to the format.
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest.update(ABOUT, measured=None)
    (bundle / "manifest.json").write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n")
    # TensorFlow and a TFLite runtime in one process can crash.
    subprocess.run([sys.executable, "-c", TEACH, str(bundle), str(state)], check=True)
    (state / "checked.json").unlink()  # about this machine's runtime


if __name__ == "__main__":
    main()
