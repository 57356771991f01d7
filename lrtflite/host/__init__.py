"""The host side: the Keras network, its weights and its training. Needs the extra `host`.

Nothing on a device imports this package. Keras is always `tf_keras` (Keras 2).
"""

from __future__ import annotations

import os
import tempfile
from importlib.util import find_spec

from lrtflite.errors import MissingExtra

for _package in ("tensorflow", "tf_keras"):
    if find_spec(_package) is None:
        raise MissingExtra(_package, "host")

# TensorFlow reads it while it loads. Its errors still come as exceptions.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def _import_tensorflow() -> None:
    """Its notes about absent GPUs go to file descriptor 2 before any setting can stop them."""
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as notes:
        os.dup2(notes.fileno(), 2)
        try:
            import tensorflow  # noqa: F401
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)


_import_tensorflow()
