"""Hand out what was learned: zips of the state, of a bundle that ships it, of a plain model."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

from lrtflite.errors import Busy, LrtfliteError, NotOffered
from lrtflite.system.extras import missing
from lrtflite_serve.service.disk import disk_errors
from lrtflite_serve.service.service import Service
from lrtflite_serve.transfers.archive import pack, state_files

# Seconds that the export of a model may take, and between two looks at whether to end it.
PATIENCE, LOOK = 600.0, 0.2
# One process with TensorFlow at a time: it takes a gigabyte.
_one_model = threading.Lock()


def export_state(service: Service, out: Path) -> None:
    """Write the zip of the state."""
    folder = Path(service.settings.state)
    with service.turns.change("download the state"), disk_errors("pack the state"):
        pack([(path, f"state/{path.name}") for path in state_files(folder)], out)


def export_bundle(service: Service, out: Path) -> None:
    """Write the zip of a bundle that ships the state."""
    with service.turns.change("download a bundle"), disk_errors("pack a bundle"):
        made = service.learner.ship(out.with_name("bundle"))
        pack([(path, f"bundle/{path.name}") for path in sorted(made.path.iterdir())], out)


def export_model(service: Service, out: Path, *, int8: bool) -> None:
    """Write the zip of a plain model, made by a process of its own.

    TensorFlow and a TFLite runtime in one process can crash. An int8 model is calibrated with kept
    pictures, unless the features of the bundle are int8 already.
    """
    if find_spec("tensorflow") is None:
        raise missing("tensorflow")
    bundle, folder = service.learner.bundle, out.with_name("model")
    words = [sys.executable, "-m", "lrtflite_cli.main", "export", str(bundle.path)]
    words += [str(service.settings.state), "--out", str(folder / "model.tflite")]
    if int8 and bundle.manifest.quantisation is None:
        words += ["--quantize", "int8", "--calibrate", f"folder:{service.kept().folder}"]
    if not _one_model.acquire(blocking=False):
        raise Busy("Cannot export a model: another one is being made", "wait for its end")
    with disk_errors("pack a model"), ExitStack() as stack:
        stack.callback(_one_model.release)
        folder.mkdir()
        line = run_child(words, service)
        if line is not None:
            raise NotOffered(
                f"Cannot export the model: {line.removeprefix('Error: ')}",
                "run `lrtflite export` on a computer",
            )
        pack([(path, path.name) for path in sorted(folder.iterdir())], out)


def run_child(words: list[str], service: Service) -> str | None:
    """Run a process until it ends or the service does; return its last line if it failed."""
    child = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for _ in range(round(PATIENCE / LOOK)):
            try:
                _, said = child.communicate(timeout=LOOK)
            except subprocess.TimeoutExpired:
                if service.events.is_closed:
                    break
                continue
            lines = said.strip().splitlines() or ["the process ended"]
            return lines[-1] if child.returncode else None
    finally:
        child.kill()
        child.wait()
    raise LrtfliteError(
        f"Cannot export the model: it took more than {PATIENCE:g} s",
        "run `lrtflite export` on a computer",
    )
