"""What the studies convert, and from what."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from lrtflite.bundle import HEAD, MANIFEST
from lrtflite.errors import LrtfliteError

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
SHARED = Path(os.environ.get("LRTFLITE_SHARED") or ROOT.parent / "shared")
IMAGENET = SHARED / "weights/mobilenet_v1_1.0_imagenet_notop.npz"
PHOTOGRAPHS = SHARED / "data/caltech50_128"


def converted(name: str, words: Sequence[str]) -> Path:
    """The bundle `build/name`, converted with `words` if it is not there yet."""
    out = BUILD / name
    if (out / MANIFEST).exists():
        sources = (ROOT / "converters").rglob("*.py")
        if max(path.stat().st_mtime for path in sources) > (out / HEAD).stat().st_mtime:
            say(f"Warning: {out} is older than converters/; rm -r it to convert it again")
        return out
    say(f"Converting {name}, which may take minutes")
    lrtflite(["convert", *words, "--classes", "50", "--out", str(out)])
    return out


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def lrtflite(words: Sequence[str]) -> str:
    """What a command prints, from a process of its own: TensorFlow and a TFLite runtime do not
    live in one."""
    command = [sys.executable, "-m", "lrtflite_cli.main", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise LrtfliteError(f"`lrtflite {' '.join(words)}` failed; see above")
    return done.stdout
