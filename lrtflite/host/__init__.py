"""The host side: the Keras network, its weights and its training. Needs the extra `host`.

Nothing on a device imports this package. Keras is always `tf_keras` (Keras 2).
"""

from __future__ import annotations

import os

from lrtflite.extras import require
from lrtflite.quiet import quiet_stderr

require("tensorflow", "tf_keras")

# TensorFlow reads it while it loads. Its errors still come as exceptions.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


# Its notes about absent GPUs come before any setting can stop them.
with quiet_stderr():
    import tensorflow  # noqa: F401
