"""Run the device side of a new bundle in other processes: next to TensorFlow it can crash."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from lrtflite.bundle.costs import Costs
from lrtflite.errors import ConversionError
from lrtflite.runtime.model import RUNTIMES, describe_runtime


def verify(bundle: Path, runtime: str) -> None:
    """Run the golden vectors on a runtime; raise ConversionError if any output differs."""
    _run("lrtflite.verification.verify", bundle, runtime, failed="fails verification")


def measure(bundle: Path, runtime: str) -> Costs:
    """Measure the cost of the bundle on this machine."""
    said = _run("lrtflite.workbench.measuring", bundle, runtime, failed="cannot be measured")
    return Costs.from_json(json.loads(said.splitlines()[-1]))


def seed(bundle: Path, frames: Path) -> None:
    """Write the bundle's initial state: the learned classes, and a memory of these frames."""
    _run("lrtflite.workbench.seeding", bundle, str(frames), failed="cannot be seeded")


def _run(module: str, bundle: Path, word: str, *, failed: str) -> str:
    command = [sys.executable, "-m", module, str(bundle), word]
    # If the process is killed, its temporary files are removed with ours.
    environment = {**os.environ, "TMPDIR": tempfile.gettempdir()}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        on = f" on {describe_runtime(word)}" if word in RUNTIMES else ""
        said = (done.stdout or done.stderr).strip().splitlines()
        raise ConversionError(
            f"The bundle {failed}{on}: {said[-1] if said else f'exit code {done.returncode}'}",
            "convert it again, and report this if it happens twice",
        )
    return done.stdout
