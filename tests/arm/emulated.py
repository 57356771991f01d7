"""Run `arm_session.py` here and on an emulated 64-bit ARM processor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
# Folder that `tools/install_arm.sh` fills; a relative path starts at the clone, as in the script.
FOLDER = ROOT / (os.environ.get("LRTFLITE_ARM") or ".arm")
NEEDED = {
    "qemu-aarch64": "qemu-aarch64",
    "an aarch64 Python 3.11": "root/usr/bin/emulated-python",
    "an ARM /proc/cpuinfo": "root/proc/cpuinfo",
    "numpy for aarch64": "packages/numpy",
    "ai-edge-litert for aarch64": "packages/ai_edge_litert",
    "tflite-runtime for aarch64": "packages/tflite_runtime",
}
# Seconds until a session counts as hung. The demo bundle takes half a minute under emulation;
# one that is given by hand may take an hour.
LIMIT = None if os.environ.get("LRTFLITE_ARM_BUNDLE") else 600


def missing(folder: Path = FOLDER) -> str:
    """Name what the emulation lacks and the command that installs it; empty if nothing."""
    lacks = [name for name, path in NEEDED.items() if not (folder / path).exists()]
    return f"{folder} has no {', '.join(lacks)}; run tools/install_arm.sh" if lacks else ""


def native_session(*arguments: str | Path) -> dict[str, Any]:
    """Run the session in a process of its own, on this computer's processor."""
    return _session([sys.executable], arguments, packages=[])


def arm_session(*arguments: str | Path) -> dict[str, Any]:
    """Run the session on an emulated Cortex-A72, the processor of a Raspberry Pi 4."""
    python = str(FOLDER / NEEDED["an aarch64 Python 3.11"])
    return _session([python], arguments, packages=[FOLDER / "packages"])


def _session(
    python: list[str], arguments: tuple[str | Path, ...], *, packages: list[Path]
) -> dict[str, Any]:
    script = Path(__file__).with_name("arm_session.py")
    done = subprocess.run(
        [*python, str(script), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [*packages, ROOT]))},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    # After a crash the code is the negative number of the signal, under qemu too.
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-2000:]}"
    result: dict[str, Any] = json.loads(done.stdout)
    return result
