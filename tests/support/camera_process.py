"""The camera loop in a process of its own: arguments that make it quick, its log and its state."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from lrtflite.state.folder import read_state

ROOT = Path(__file__).parents[2]
QUICK = ("--seconds", "0.4", "--fps", "20")
SYNTHETIC = ("--camera", "synthetic", *QUICK)
Start = Callable[..., "subprocess.Popen[str]"]


def wait_for(process: subprocess.Popen[str], wanted: str) -> None:
    """Read the log up to the line with `wanted`; fail if the process ends before it."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if wanted in line:
            return
    raise AssertionError(f"no {wanted!r} in {lines}; {process.communicate()[1]}")


def labels(state: Path) -> list[str]:
    return [label for label in read_state(state).meta.labels if label is not None]
