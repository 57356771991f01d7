"""Run the device's side of a new bundle, in processes without TensorFlow: the two do not mix."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from lrtflite.costs import Costs
from lrtflite.errors import ConversionError
from lrtflite.runtime import describe_runtime


def verify(bundle: Path, runtime: str) -> None:
    """Check the golden vectors on a runtime; raise ConversionError if they do not come out."""
    _run("lrtflite.verify", bundle, runtime, failed="fails verification")


def measure(bundle: Path, runtime: str) -> Costs:
    """Measure what the bundle costs here."""
    said = _run("lrtflite.measuring", bundle, runtime, failed="cannot be measured")
    return Costs.from_json(json.loads(said.splitlines()[-1]))


def _run(module: str, bundle: Path, runtime: str, *, failed: str) -> str:
    command = [sys.executable, "-m", module, str(bundle), runtime]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stdout or done.stderr).strip().splitlines()
        raise ConversionError(
            f"The bundle {failed} on {describe_runtime(runtime)}: "
            f"{said[-1] if said else f'exit code {done.returncode}'}"
        )
    return done.stdout
