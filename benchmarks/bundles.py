"""Bundles for the benchmarks, and the weights and pictures that they are made from."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from lrtflite.bundle.bundle import HEAD_FILE, MANIFEST_FILE
from lrtflite.errors import LrtfliteError

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
SHARED = Path(os.environ.get("LRTFLITE_SHARED") or ROOT.parent / "shared")
IMAGENET = SHARED / "weights/mobilenet_v1_1.0_imagenet_notop.npz"
# ImageNet weights of each network.
WEIGHTS = {
    "mobilenet_v1": IMAGENET,
    "mobilenet_v2": SHARED / "weights/mobilenet_v2_1.0_imagenet_notop.npz",
}
PHOTOGRAPHS = SHARED / "data/caltech50_128"
# The same photographs at 224 x 224.
LARGE_PHOTOGRAPHS = SHARED / "data/caltech50_224"


# Files that determine the content of a bundle.
SOURCES = ("converters", "lrtflite/host", "lrtflite/bundle", "lrtflite/networks")


def converted(name: str, words: Sequence[str]) -> Path:
    """Return the bundle `build/name`; convert it with `words` unless that was done before."""
    out = BUILD / name
    said = out.with_name(f"{out.name}.words")  # next to it, because a bundle has no other files
    if (out / MANIFEST_FILE).exists() and said.exists() and said.read_text() == " ".join(words):
        if max(map(newest, SOURCES)) > (out / HEAD_FILE).stat().st_mtime:
            say(f"Warning: {out} is older than the code; rm -r it to convert it again")
        return out
    say(f"Converting {name}, which may take minutes")
    lrtflite(["convert", *words, "--classes", "50", "--out", str(out)])
    said.write_text(" ".join(words))
    return out


def newest(source: str) -> float:
    """Return the time of the last change to a file, or to the Python files of a folder."""
    path = ROOT / source
    return max(file.stat().st_mtime for file in [path, *path.rglob("*.py")])


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def lrtflite(words: Sequence[str]) -> str:
    """Run a command and return its output.

    It runs in a process of its own, because TensorFlow and a TFLite runtime in one can crash.
    """
    command = [sys.executable, "-m", "lrtflite_cli.main", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise LrtfliteError(f"`lrtflite {' '.join(words)}` failed", "fix the error above")
    return done.stdout
