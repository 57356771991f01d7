"""Verify a bundle on an installed runtime, against the golden vectors from TensorFlow."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO

from lrtflite.bundle.bundle import FEATURES_FILE, HEAD_FILE, Bundle
from lrtflite.bundle.manifest import Manifest
from lrtflite.bundle.quantisation import Quantisation
from lrtflite.contract.checking import breaches
from lrtflite.contract.comparison import Check, compare, compare_changes, compare_rounded
from lrtflite.contract.golden import (
    CHANGE,
    MOVED,
    ROUNDING,
    Arrays,
    Runner,
    fitting,
    read_golden,
    run_golden,
)
from lrtflite.contract.signatures import FEATURES, HEAD
from lrtflite.errors import LrtfliteError
from lrtflite.files.bundle_file import BundleFile
from lrtflite.runtime.flatbuffer import custom_ops, read_ops
from lrtflite.runtime.model import Model, describe_runtime, pick_runtime
from lrtflite.state.initial import check_initial
from lrtflite.verification.child import run_child
from lrtflite.verification.limits import trial_limits


def verify_bundle(
    path: str | Path,
    *,
    runtime: str = "auto",
    threads: int = 1,
    require_signature: str | Path | None = None,
) -> list[Check]:
    """Return all checks of a bundle; raise BundleError for damaged files, or models that crash.

    The models run in a child process, within the limits of a trial.
    """
    bundle = Bundle.open(path, require_signature=require_signature)
    pick_runtime(runtime)
    key = [] if require_signature is None else [str(require_signature)]
    found = run_child(
        "lrtflite.verification.verify",
        *(str(bundle.path), runtime, str(threads), *key),
        what=f"a trial of {bundle.path}",
        limits=trial_limits(bundle.manifest.measured),
    )
    checks = [Check(**each) for each in json.loads(found)]
    if require_signature is not None:
        checks.insert(0, Check("signature", True, f"signed with {require_signature}"))
    return checks


def verify_here(
    path: str | Path,
    *,
    runtime: str = "auto",
    threads: int = 1,
    require_signature: str | Path | None = None,
) -> list[Check]:
    """Like `verify_bundle`, but in this process, which the models may crash."""
    bundle = Bundle.open(path, require_signature=require_signature)
    checks = [Check("files", True, f"{len(bundle.manifest.files)} files match their SHA-256")]
    for name in (FEATURES_FILE, HEAD_FILE):
        file = BundleFile(bundle.path / name, bundle.content(name))
        others = custom_ops(file)
        seen = ", ".join(others) or f"{len(read_ops(file))} built-in ops"
        checks.append(Check(f"ops of {name}", not others, seen))
    if not all(check.passed for check in checks):
        return checks
    features = Model(bundle.features, runtime=runtime, threads=threads)
    head = Model(bundle.head, runtime=runtime, threads=threads)
    checks.append(Check("runtime", True, describe_runtime(features.runtime)))
    checks += check_signatures(bundle.manifest, features, head)
    if all(check.passed for check in checks):
        golden = read_golden(bundle.golden)
        with fitting(bundle.path):
            checks += check_golden(golden, features, head, bundle.manifest.quantisation)
        checks.append(Check("initial state", True, check_initial(bundle, head, features)))
    return checks


def check_signatures(manifest: Manifest, features: Model, head: Model) -> Iterator[Check]:
    """Check both models against the contract, with the sizes in the manifest."""
    for name, model in ((FEATURES, features), (HEAD, head)):
        problems = breaches(manifest, name, model.signatures)
        seen = "; ".join(problems) or ", ".join(model.signatures)
        yield Check(f"signatures of {model.path.name}", not problems, seen)


def check_golden(
    golden: Arrays, features: Runner, head: Runner, quantisation: Quantisation | None = None
) -> Iterator[Check]:
    """Run the golden session and compare all outputs."""
    found = run_golden(features, head, golden)
    latents = found["latents"], golden["latents"]
    if quantisation is not None:
        yield compare_rounded("latents", *latents, zero_point=quantisation.zero_point)
    elif ROUNDING in golden:
        yield compare_rounded("latents", *latents, rounding=float(golden[ROUNDING][0]))
    else:
        yield compare("latents", *latents)
    names = {
        "probabilities_before": "probabilities before training",
        "trains": "layers that train",
        "losses": f"losses of {golden['losses'].size} steps in {len(golden['counts'])} sessions",
        "learned": "classes learned",
        "probabilities_after": "probabilities after training",
        "learned_forgotten": "classes left after forgetting",
        "probabilities_forgotten": "probabilities after forgetting",
        "learned_restored": "classes after restoring",
        "probabilities_restored": "probabilities after restoring",
    }
    for array, name in names.items():
        yield compare(name, found[array], golden[array])
    for prefix, name in ((CHANGE, "state after training"), (MOVED, "moments after adapting")):
        tensors = [array for array in found if array.startswith(prefix)]
        if tensors:
            yield compare_changes(name, prefix, tensors, found, golden)


def in_child(stream: BinaryIO, path: str, runtime: str, threads: str, *key: str) -> bytes:
    """Return all checks of a bundle, as JSON."""
    required = key[0] if key else None
    checks = verify_here(path, runtime=runtime, threads=int(threads), require_signature=required)
    return json.dumps([asdict(check) for check in checks]).encode()


def main(path: str, runtime: str) -> int:
    """Print what failed; return 0 or 1: `python -m lrtflite.verification.verify BUNDLE RUNTIME`."""
    try:
        failed = [check for check in verify_here(path, runtime=runtime) if not check.passed]
    except LrtfliteError as error:
        print(error)
        return 1
    for check in failed:
        print(f"{check.name}: {check.seen}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
