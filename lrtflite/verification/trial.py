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
from typing import BinaryIO

from lrtflite.bundle.bundle import (
    FEATURES_FILE,
    FILES,
    GOLDEN_FILE,
    HEAD_FILE,
    MANIFEST_FILE,
    Bundle,
)
from lrtflite.bundle.manifest_json import read_manifest
from lrtflite.contract.checking import breaches
from lrtflite.contract.signatures import FEATURES, HEAD
from lrtflite.errors import BundleError, LrtfliteError
from lrtflite.files.atomic import write_whole
from lrtflite.files.reading import read_whole
from lrtflite.runtime.model import Model, describe_runtime, pick_runtime
from lrtflite.state.folder import CHECKED_FILE

# Seconds after which the golden session counts as endless; a slow board takes a minute.
MOST_SECONDS = 900
# Maximum number of bytes in the file that remembers trials, and of trials in it.
_MOST_BYTES, _MOST_TRIALS = 1 << 16, 32
passed: set[str] = set()


def try_models(bundle: Bundle, runtime: str, folder: Path | None, *, remember: bool = True) -> None:
    """Run the golden session in a child, unless these models ran on this runtime before.

    What was run is remembered in this process, and in the state folder. The child gets the bytes
    that were checked: it reads no file of the bundle, which may have changed since. Raise
    BundleError if the child crashes or fails.
    """
    runtime = pick_runtime(runtime)
    trial = f"{bundle.identity} {describe_runtime(runtime)}"
    known = [] if folder is None else _read(folder)
    if trial not in passed and trial not in known:
        run_child("lrtflite.verification.trial", bundle.path, runtime, given=_packed(bundle))
    passed.add(trial)
    if folder is not None and remember and trial not in known:
        with suppress(OSError):
            write_whole(folder / CHECKED_FILE, json.dumps([*known, trial][-_MOST_TRIALS:]) + "\n")


def run_child(module: str, bundle: Path, *words: str, given: bytes = b"") -> str:
    """Run `python -m MODULE BUNDLE WORDS` and return its output, or raise BundleError.

    The child reads `given` from its standard input.
    """
    import subprocess  # only here, because most openings need no child

    command = [sys.executable, "-m", module, str(bundle), *words]
    package = str(Path(__file__).resolve().parents[2])
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            check=False,
            env=environment,
            timeout=MOST_SECONDS,
            input=given,
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
    output = done.stdout.decode(errors="replace")
    if done.returncode:
        said = (output.strip() or done.stderr.decode(errors="replace").strip()).splitlines()
        problem = (said[-1] if said else f"exit code {done.returncode}").partition("; ")[0]
        raise BundleError(f"The models of {bundle} do not run: {problem}; convert the bundle again")
    return output


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


def _packed(bundle: Bundle) -> bytes:
    """Return the manifest and the files of a bundle: a line of JSON with their sizes, then all."""
    contents = {name: bundle.content(name) for name in FILES}
    contents = {MANIFEST_FILE: bundle.manifest.to_json().encode(), **contents}
    sizes = json.dumps({name: len(content) for name, content in contents.items()}).encode()
    return b"".join([sizes, b"\n", *contents.values()])


def _unpacked(path: Path, stream: BinaryIO) -> Bundle:
    """Return what `_packed` put into a stream."""
    sizes = json.loads(stream.readline())
    contents = {name: stream.read(size) for name, size in sizes.items()}
    manifest = read_manifest(contents.pop(MANIFEST_FILE).decode(), where=str(path))
    return Bundle(path, manifest, contents)


def main(path: str, runtime: str, stream: BinaryIO) -> int:
    """Run the golden session of a bundle; print why it fails, and return 0 or 1."""
    from lrtflite.contract.golden import fitting, read_golden, run_golden

    try:
        bundle = _unpacked(Path(path), stream)
        features = Model(bundle.features, runtime=runtime, **bundle.loaded(FEATURES_FILE))
        head = Model(bundle.head, runtime=runtime, **bundle.loaded(HEAD_FILE))
        manifest, models = bundle.manifest, {FEATURES: features, HEAD: head}
        if any(breaches(manifest, name, model.signatures) for name, model in models.items()):
            return 0  # the parent says what does not fit
        golden = read_golden(bundle.golden, bundle.content(GOLDEN_FILE))
        with fitting(bundle.path):
            run_golden(features, head, golden)
    except LrtfliteError as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.stdin.buffer))
