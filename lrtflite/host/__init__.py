"""The host side: the Keras network, its weights and its training. Requires the extra `host`.

Nothing on a device imports this package. Keras is always `tf_keras` (Keras 2).
"""

from __future__ import annotations

import os

from lrtflite.system.extras import require
from lrtflite.system.quiet import quiet_stderr

require("tensorflow", "tf_keras")

# TensorFlow reads this while it loads. Errors are still raised as exceptions.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


# TensorFlow prints notes about missing GPUs before any setting can stop them.
with quiet_stderr():
    import tensorflow  # noqa: F401
