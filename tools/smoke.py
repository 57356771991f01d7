"""Check an install: the command answers, and the packaged bundle can be inspected.

`python -I tools/smoke.py`, with the Python that lrtflite is installed in. It needs no extra.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path


def answer(*words: str, code: int = 0) -> str:
    """Run a command in an empty folder and return its output; exit if its code is another one."""
    command = [sys.executable, "-m", "lrtflite_cli.main", *words]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if done.returncode != code or "Traceback" in done.stderr:
        sys.exit(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def main() -> None:
    import lrtflite

    bundle = Path(lrtflite.__file__).parent / "demo_bundle"
    if lrtflite.__version__ not in answer("--version"):
        sys.exit("--version does not print the version of the package")
    answer("--help")
    manifest = json.loads(answer("inspect", str(bundle), "--json"))
    if manifest["replay_layer"] != "pool6":
        sys.exit(f"inspect --json printed {manifest}")
    if find_spec("ai_edge_litert") is None and find_spec("tflite_runtime") is None:
        # Without a runtime, a command that needs one says what to install.
        if "pip install" not in answer("verify", str(bundle), code=1):
            sys.exit("verify does not say what to install")
    else:
        answer("verify", str(bundle))
    print(f"lrtflite {lrtflite.__version__} answers")


if __name__ == "__main__":
    main()
