"""Run a bundle's models in a child process first, so that a crash there becomes an error here.

A TFLite runtime trusts its models: one that is well-formed but wrong can end the process that runs
it. This isolates crashes. It is not a sandbox: the child may do all that this process may do.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from lrtflite.bundle import Bundle
from lrtflite.contract import FEATURES, HEAD
from lrtflite.contract_checking import breaches
from lrtflite.errors import BundleError, LrtfliteError
from lrtflite.generations import CHECKED_FILE
from lrtflite.regular_file import read_whole
from lrtflite.runtime import Model, describe_runtime, pick_runtime
from lrtflite.whole_file import write_whole

# Seconds after which the golden session counts as endless; a slow board takes a minute.
MOST_SECONDS = 900
# Maximum number of bytes in the file that remembers trials, and of trials in it.
_MOST_BYTES, _MOST_TRIALS = 1 << 16, 32
passed: set[str] = set()


def try_models(bundle: Bundle, runtime: str, folder: Path | None, *, remember: bool = True) -> None:
    """Run the golden session in a child, unless these models ran on this runtime before.

    What was run is remembered in this process, and in the state folder. Raise BundleError if the
    child crashes or fails.
    """
    runtime = pick_runtime(runtime)
    trial = f"{bundle.identity} {describe_runtime(runtime)}"
    known = [] if folder is None else _read(folder)
    if trial not in passed and trial not in known:
        run_child("lrtflite.trial", bundle.path, runtime)
    passed.add(trial)
    if folder is not None and remember and trial not in known:
        with suppress(OSError):
            write_whole(folder / CHECKED_FILE, json.dumps([*known, trial][-_MOST_TRIALS:]) + "\n")


def run_child(module: str, bundle: Path, *words: str) -> str:
    """Run `python -m MODULE BUNDLE WORDS` and return its output, or raise BundleError."""
    import subprocess  # only here, because most openings need no child

    command = [sys.executable, "-m", module, str(bundle), *words]
    package = str(Path(__file__).resolve().parent.parent)
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            env=environment,
            timeout=MOST_SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        raise BundleError(
            f"Expected models that run, got no end of the golden session of {bundle} after "
            f"{MOST_SECONDS} s; convert the bundle again, or use a bundle that you trust"
        ) from error
    except OSError as error:
        raise BundleError(
            f"Cannot try the models of {bundle} in a child process: {error.strerror}; try again"
        ) from error
    if done.returncode < 0:
        raise BundleError(
            f"Expected models that run, got a crash ({_signal(-done.returncode)}) in a trial of "
            f"{bundle}; convert the bundle again, or use a bundle that you trust"
        )
    if done.returncode:
        said = (done.stdout.strip() or done.stderr.strip()).splitlines()
        problem = (said[-1] if said else f"exit code {done.returncode}").partition("; ")[0]
        raise BundleError(f"The models of {bundle} do not run: {problem}; convert the bundle again")
    return done.stdout


def _signal(number: int) -> str:
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _read(folder: Path) -> list[str]:
    """Return the trials that a state folder remembers; none if the file is odd."""
    try:
        found = json.loads(read_whole(folder / CHECKED_FILE, most=_MOST_BYTES))
    except (OSError, ValueError, RecursionError, LrtfliteError):
        return []
    return found if isinstance(found, list) and all(isinstance(x, str) for x in found) else []


def main(path: str, runtime: str) -> int:
    """Run the golden session of a bundle; print why it fails, and return 0 or 1."""
    from lrtflite.golden import fitting, run_golden
    from lrtflite.golden_file import read_golden

    try:
        bundle = Bundle.open(path)
        features, head = (Model(each, runtime=runtime) for each in (bundle.features, bundle.head))
        manifest, models = bundle.manifest, {FEATURES: features, HEAD: head}
        if any(breaches(manifest, name, model.signatures) for name, model in models.items()):
            return 0  # the parent says what does not fit
        golden = read_golden(bundle.golden)
        with fitting(bundle.path):
            run_golden(features, head, golden)
    except LrtfliteError as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
