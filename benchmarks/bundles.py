"""What the studies convert, and from what."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from lrtflite.errors import LrtfliteError

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
SHARED = Path(os.environ.get("LRTFLITE_SHARED") or ROOT.parent / "shared")
IMAGENET = SHARED / "weights/mobilenet_v1_1.0_imagenet_notop.npz"
PHOTOGRAPHS = SHARED / "data/caltech50_128"


def lrtflite(words: Sequence[str]) -> str:
    """What a command prints, from a process of its own: TensorFlow and a TFLite runtime do not
    live in one."""
    command = [sys.executable, "-m", "lrtflite_cli.main", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise LrtfliteError(f"`lrtflite {' '.join(words)}` failed; see above")
    return done.stdout
