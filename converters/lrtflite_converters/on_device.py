"""Run the device's side of a new bundle, in processes without TensorFlow: the two do not mix."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from lrtflite.costs import Costs
from lrtflite.errors import ConversionError
from lrtflite.runtime import RUNTIMES, describe_runtime


def verify(bundle: Path, runtime: str) -> None:
    """Check the golden vectors on a runtime; raise ConversionError if they do not come out."""
    _run("lrtflite.verify", bundle, runtime, failed="fails verification")


def measure(bundle: Path, runtime: str) -> Costs:
    """Measure what the bundle costs here."""
    said = _run("lrtflite.measuring", bundle, runtime, failed="cannot be measured")
    return Costs.from_json(json.loads(said.splitlines()[-1]))


def seed(bundle: Path, frames: Path) -> None:
    """Write the bundle's initial state: what its network learned, with frames to replay."""
    _run("lrtflite.seeding", bundle, str(frames), failed="cannot be given its memory")


def _run(module: str, bundle: Path, word: str, *, failed: str) -> str:
    command = [sys.executable, "-m", module, str(bundle), word]
    # Should it be killed, its temporary files go with ours.
    environment = {**os.environ, "TMPDIR": tempfile.gettempdir()}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        on = f" on {describe_runtime(word)}" if word in RUNTIMES else ""
        said = (done.stdout or done.stderr).strip().splitlines()
        raise ConversionError(
            f"The bundle {failed}{on}: {said[-1] if said else f'exit code {done.returncode}'}"
        )
    return done.stdout
