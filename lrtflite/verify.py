"""Verify a bundle on an installed runtime, against the golden vectors from TensorFlow."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from lrtflite.bundle import Bundle
from lrtflite.comparison import Check, compare, compare_changes
from lrtflite.contract import FEATURES, HEAD
from lrtflite.contract_checking import breaches
from lrtflite.errors import LrtfliteError
from lrtflite.flatbuffer_ops import custom_ops, read_ops
from lrtflite.golden import CHANGE, MOVED, Arrays, Runner, read_golden, run_golden
from lrtflite.initial_state import check_initial
from lrtflite.manifest import Manifest
from lrtflite.runtime import Model, describe_runtime


def verify_bundle(path: str | Path, *, runtime: str = "auto", threads: int = 1) -> list[Check]:
    """Return all checks of a bundle; raise BundleError for damaged files."""
    bundle = Bundle.open(path)
    checks = [Check("files", True, f"{len(bundle.manifest.files)} files match their SHA-256")]
    for model_path in (bundle.features, bundle.head):
        others = custom_ops(model_path)
        seen = ", ".join(others) or f"{len(read_ops(model_path))} built-in ops"
        checks.append(Check(f"ops of {model_path.name}", not others, seen))
    if not all(check.passed for check in checks):
        return checks
    features = Model(bundle.features, runtime=runtime, threads=threads)
    head = Model(bundle.head, runtime=runtime, threads=threads)
    checks.append(Check("runtime", True, describe_runtime(features.runtime)))
    checks += check_signatures(bundle.manifest, features, head)
    if all(check.passed for check in checks):
        checks += check_golden(read_golden(bundle.golden), features, head)
        checks.append(Check("initial state", True, check_initial(bundle, head)))
    return checks


def check_signatures(manifest: Manifest, features: Model, head: Model) -> Iterator[Check]:
    """Check both models against the contract, with the sizes in the manifest."""
    for name, model in ((FEATURES, features), (HEAD, head)):
        problems = breaches(manifest, name, model.signatures)
        seen = "; ".join(problems) or ", ".join(model.signatures)
        yield Check(f"signatures of {model.path.name}", not problems, seen)


def check_golden(golden: Arrays, features: Runner, head: Runner) -> Iterator[Check]:
    """Run the golden session and compare all outputs."""
    found = run_golden(features, head, golden)
    names = {
        "latents": "latents",
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


def main(path: str, runtime: str) -> int:
    """Run `python -m lrtflite.verify BUNDLE RUNTIME`: print what failed, return 0 or 1."""
    try:
        failed = [check for check in verify_bundle(path, runtime=runtime) if not check.passed]
    except LrtfliteError as error:
        print(error)
        return 1
    for check in failed:
        print(f"{check.name}: {check.seen}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
