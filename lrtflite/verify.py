"""Check a bundle on the runtime at hand, against the golden vectors that TensorFlow computed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.bundle import Bundle
from lrtflite.contract import FEATURES, HEAD, breaches
from lrtflite.errors import LrtfliteError
from lrtflite.flatbuffer_ops import custom_ops, read_ops
from lrtflite.golden import CHANGE, MOVED, Arrays, Runner, read_golden, run_golden
from lrtflite.manifest import Manifest
from lrtflite.runtime import Model, describe_runtime
from lrtflite.shipping import check_initial

# Largest difference of a value allowed, relative to itself and to the largest value beside it.
# float32 sums of up to 10^4 terms, added in another order by each runtime's kernels, differ by some
# 1e-5 of their size; latents pass through 27 layers. A wrong op is off by far more.
VALUE_TOLERANCE, LARGEST_TOLERANCE = 1e-3, 1e-4
# Largest difference of a tensor's change in training allowed, relative to the change, as vectors.
# Changes are small differences of large numbers, and a path through many layers widens rounding; a
# wrong gradient is off by all of it.
CHANGE_TOLERANCE = 0.1
FAINTEST_CHANGE = 1e-9


@dataclass(frozen=True)
class Check:
    """One thing that was checked, and what was seen."""

    name: str
    passed: bool
    seen: str


def verify_bundle(path: str | Path, *, runtime: str = "auto", threads: int = 1) -> list[Check]:
    """Return all checks of a bundle. Damaged files raise BundleError before a model is loaded."""
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
    """Check both models against the contract, with the sizes that the manifest promises."""
    for name, model in ((FEATURES, features), (HEAD, head)):
        problems = breaches(manifest, name, model.signatures)
        seen = "; ".join(problems) or ", ".join(model.signatures)
        yield Check(f"signatures of {model.path.name}", not problems, seen)


def check_golden(golden: Arrays, features: Runner, head: Runner) -> Iterator[Check]:
    """Run the golden session and compare everything that comes out."""
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
            yield same_changes(name, prefix, tensors, found, golden)


def same_changes(
    name: str, prefix: str, tensors: list[str], found: Arrays, golden: Arrays
) -> Check:
    """Check that every tensor changed as TensorFlow's did; name the worst one."""
    worst, where = 0.0, ""
    for array in tensors:
        expected, change, tensor = golden.get(array), found[array], array[len(prefix) :]
        if expected is None or change.shape != expected.shape:
            wanted = 0 if expected is None else len(expected)
            return Check(name, False, f"expected {wanted} values of {tensor}, got {len(change)}")
        if not np.isfinite(change).all():
            return Check(name, False, f"NaN or infinity in {tensor}")
        size = float(np.linalg.norm(expected))
        difference = float(np.linalg.norm(change - expected)) / max(size, FAINTEST_CHANGE)
        if difference > worst:
            worst, where = difference, tensor
    seen = f"{len(tensors)} tensors, differing by {worst:.1e} of their change at most"
    return Check(name, worst <= CHANGE_TOLERANCE, f"{seen} ({where})" if where else seen)


def compare(name: str, found: NDArray[Any], expected: NDArray[Any]) -> Check:
    """Check values relative to the largest of them and to themselves."""
    if found.shape != expected.shape:
        return Check(name, False, f"expected shape {expected.shape}, got {found.shape}")
    # uint8 frames, the latents of `images`, would wrap around.
    found, expected = found.astype(np.float64), expected.astype(np.float64)
    worst = float(np.abs(found - expected).max(initial=0))
    tolerance = LARGEST_TOLERANCE * float(np.abs(expected).max(initial=0))
    # NaN fails every comparison, as it should.
    passed = bool(np.allclose(found, expected, rtol=VALUE_TOLERANCE, atol=tolerance))
    return Check(name, passed, f"largest difference {worst:.1e}")


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
