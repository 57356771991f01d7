"""Run scripts of this folder that need TensorFlow, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest


def made_by(script: str, folder: Path) -> Path:
    """Run a script that fills `folder`; return `folder`."""
    # Found, not imported: TensorFlow and a TFLite runtime in one process can crash.
    if find_spec("tensorflow") is None:
        pytest.skip("needs the extra host, to convert bundles")
    words = [sys.executable, str(Path(__file__).parent / script), str(folder)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return folder
