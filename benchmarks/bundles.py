"""What the studies convert, and from what."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from lrtflite.bundle import HEAD_FILE, MANIFEST_FILE
from lrtflite.errors import LrtfliteError

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
SHARED = Path(os.environ.get("LRTFLITE_SHARED") or ROOT.parent / "shared")
IMAGENET = SHARED / "weights/mobilenet_v1_1.0_imagenet_notop.npz"
PHOTOGRAPHS = SHARED / "data/caltech50_128"


# What decides about the content of a bundle.
SOURCES = ("converters", "lrtflite/host", "lrtflite/manifest.py", "lrtflite/layer_names.py")


def converted(name: str, words: Sequence[str]) -> Path:
    """The bundle `build/name`, converted with `words` unless it is there and was."""
    out = BUILD / name
    said = out.with_name(f"{out.name}.words")  # beside it: a bundle has no files but its own
    if (out / MANIFEST_FILE).exists() and said.exists() and said.read_text() == " ".join(words):
        if max(map(newest, SOURCES)) > (out / HEAD_FILE).stat().st_mtime:
            say(f"Warning: {out} is older than what it is made by; rm -r it to convert it again")
        return out
    say(f"Converting {name}, which may take minutes")
    lrtflite(["convert", *words, "--classes", "50", "--out", str(out)])
    said.write_text(" ".join(words))
    return out


def newest(source: str) -> float:
    """When the last of a file, or of a folder's Python files, was changed."""
    path = ROOT / source
    return max(file.stat().st_mtime for file in [path, *path.rglob("*.py")])


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
