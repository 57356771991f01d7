"""Run a bundle's models in a child process first, so that a crash there becomes an error here.

A TFLite runtime trusts its models: one that is well-formed but wrong can end the process that runs
it, or fill its RAM. INVARIANT: no process runs a model of a bundle unless it is a child of
`run_child`, or `try_models` came before. `convert` starts `lrtflite.verification.verify` and
`lrtflite.workbench.measuring` for its own bundles.
"""

from __future__ import annotations

import json
import platform
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np

from lrtflite.bundle.bundle import (
    FILES,
    MANIFEST_FILE,
    Bundle,
)
from lrtflite.bundle.manifest_json import read_manifest
from lrtflite.contract.checking import check_contract
from lrtflite.contract.signatures import FEATURES, HEAD, signatures_of
from lrtflite.errors import LrtfliteError
from lrtflite.files.atomic import write_atomic
from lrtflite.files.reading import read_whole
from lrtflite.runtime.model import Model, describe_runtime, pick_runtime
from lrtflite.state.folder import CHECKED_FILE
from lrtflite.verification.child import run_child
from lrtflite.verification.limits import trial_limits

# Maximum number of bytes in the file that remembers trials, and of trials in it.
_MAX_BYTES, _MAX_TRIALS = 1 << 16, 32
passed: set[str] = set()


def try_models(
    bundle: Bundle, runtime: str = "auto", folder: Path | None = None, *, remember: bool = True
) -> None:
    """Run the golden session in a child, unless these models passed on this runtime before.

    A trial that passed is remembered in this process, and in the state folder. The child gets the
    bytes that were checked: it reads no file of the bundle, which may have changed since. Raise
    BundleError if the child crashes, fails, or exceeds a limit of `trial_limits`.
    """
    runtime = pick_runtime(runtime)
    trial = f"{bundle.identity} {describe_runtime(runtime)} {platform.machine()}"
    known = [] if folder is None else _read(folder)
    if trial not in passed and trial not in known:
        what = f"a trial of {bundle.path}"
        limits = trial_limits(bundle.manifest.measured)
        words = (str(bundle.path), runtime)
        run_child(
            "lrtflite.verification.trial", *words, what=what, limits=limits, given=packed(bundle)
        )
    passed.add(trial)
    if folder is not None and remember and trial not in known:
        with suppress(OSError):
            write_atomic(folder / CHECKED_FILE, json.dumps([*known, trial][-_MAX_TRIALS:]) + "\n")


def packed(bundle: Bundle) -> bytes:
    """Return the manifest and the files of a bundle: a line of JSON with their sizes, then all."""
    contents = {name: bundle.content(name) for name in FILES}
    contents = {MANIFEST_FILE: bundle.manifest.to_json().encode(), **contents}
    sizes = json.dumps({name: len(content) for name, content in contents.items()}).encode()
    return b"".join([sizes, b"\n", *contents.values()])


def unpacked(path: Path, stream: BinaryIO) -> Bundle:
    """Return the bundle that `packed` put into a stream; `path` names it in errors."""
    sizes = json.loads(stream.readline())
    contents = {name: stream.read(size) for name, size in sizes.items()}
    manifest = read_manifest(contents.pop(MANIFEST_FILE).decode(), where=str(path))
    return Bundle(path, manifest, contents)


def in_child(stream: BinaryIO, path: str, runtime: str) -> bytes:
    """Run the golden session of a packed bundle, then every signature that it left out."""
    from lrtflite.contract.golden import fitting, read_golden, run_golden

    bundle = unpacked(Path(path), stream)
    features = Model(bundle.features, runtime=runtime)
    head = Model(bundle.head, runtime=runtime)
    check_contract(bundle, features, head)
    golden = read_golden(bundle.golden)
    with fitting(bundle.path):
        run_golden(features, head, golden)
    # The golden vectors come with the models, so they may call less than a learner will.
    for part, model in ((FEATURES, features), (HEAD, head)):
        for name in signatures_of(part):
            if name in model.signatures and name not in model.ran:
                _run_on_zeros(model, name)
    return b""


def _run_on_zeros(model: Model, signature: str) -> None:
    inputs = model.signatures[signature].inputs.items()
    model.run(
        signature,
        **{
            name: np.zeros([max(1, length) for length in tensor.shape], tensor.dtype)
            for name, tensor in inputs
        },
    )


def _read(folder: Path) -> list[str]:
    """Return the trials that a state folder remembers; none if the file is invalid."""
    try:
        found = json.loads(read_whole(folder / CHECKED_FILE, most=_MAX_BYTES))
    except (OSError, ValueError, RecursionError, LrtfliteError):
        return []
    return found if isinstance(found, list) and all(isinstance(x, str) for x in found) else []
