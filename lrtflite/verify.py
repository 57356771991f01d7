"""Prove a bundle on the runtime at hand, against the golden vectors that TensorFlow computed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.bundle import Bundle
from lrtflite.errors import BundleError, LrtfliteError
from lrtflite.flatbuffer_ops import custom_ops, read_ops
from lrtflite.manifest import RATES, TRUNK_RATES, Manifest
from lrtflite.runtime import Model, Signature, describe_runtime
from lrtflite.shipping import check_initial

# float32 sums of up to 10^4 terms, added in another order by each runtime's kernels, differ by
# some 1e-5 of their size; latents pass through 27 layers. A wrong op is off by far more. Small
# values among large ones are judged by the largest.
OF_ITSELF, OF_THE_LARGEST = 1e-3, 1e-4
# How much a tensor changed in training, as a vector. Changes are small differences of large
# numbers, and a path through many layers widens rounding; a wrong gradient is off by all of it.
OF_A_CHANGE = 0.1
FAINTEST_CHANGE = 1e-9
# Enough of a tensor to know it by; a bundle need not carry every weight twice.
SAMPLED = 1000


@dataclass(frozen=True)
class Check:
    """One thing that was checked, and what was seen."""

    name: str
    passed: bool
    seen: str


def verify_bundle(path: str | Path, *, runtime: str = "auto", threads: int = 1) -> list[Check]:
    """All checks of a bundle. Damaged files raise `BundleError` before any model is loaded."""
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
        checks += _check_golden(_read_golden(bundle.golden), features, head)
        checks.append(Check("initial state", True, check_initial(bundle, head)))
    return checks


def check_signatures(manifest: Manifest, features: Model, head: Model) -> Iterator[Check]:
    """Whether both models have the signatures, shapes and latents that the manifest promises."""
    size, slots = manifest.input_size, manifest.slots
    latent, batch = manifest.latent_shape, manifest.batch_size
    frames: dict[str, dict[str, tuple[int, ...]]] = {"extract": {"frames": (-1, size, size, 3)}}
    if manifest.adapt_moments:
        group = manifest.new_per_batch
        frames.update(adapt={"frames": (group, size, size, 3), "rate": (1,)}, save={}, restore={})
    latents: dict[str, dict[str, tuple[int, ...]]] = {
        "infer": {"latents": (-1, *latent)},
        "begin": {"counts": (slots,), "head_start": (1,)},
        "train": {"latents": (batch, *latent), "targets": (batch, slots)},
        "consolidate": {"counts": (slots,)},
        "save": {},
        "restore": {},
    }
    for model, expected in ((features, frames), (head, latents)):
        names = tuple(expected)
        missing = [name for name in names if name not in model.signatures]
        if missing:
            yield Check(f"signatures of {model.path.name}", False, f"no {', '.join(missing)}")
            continue
        odd = [
            f"{name}.{tensor} is {_shape(model.signatures[name], tensor)}, not {shape}"
            for name in names
            for tensor, shape in expected[name].items()
            if _shape(model.signatures[name], tensor) != shape
        ]
        odd += [
            f"{name}.latents is {found.dtype}, not {manifest.latent_dtype}"
            for name in names
            if (found := model.signatures[name].inputs.get("latents"))
            and found.dtype != np.dtype(manifest.latent_dtype)
        ]
        odd += [
            f"{name}.{tensor} is a scalar, not (1,)"
            for name, signature in model.signatures.items()
            for tensor, found in signature.inputs.items()
            if found.shape == ()
        ]
        if "save" in names:
            odd += _unpaired(model)
        seen = "; ".join(odd) or ", ".join(names)
        yield Check(f"signatures of {model.path.name}", not odd, seen)


def _shape(signature: Signature, tensor: str) -> tuple[int, ...] | None:
    return signature.inputs[tensor].shape if tensor in signature.inputs else None


def _unpaired(head: Model) -> list[str]:
    """What `save` gives, `restore` must take."""
    saved, restored = head.signatures["save"].outputs, head.signatures["restore"].inputs
    return [] if saved == restored else ["restore does not take what save gives"]


def _check_golden(golden: dict[str, NDArray[Any]], features: Model, head: Model) -> Iterator[Check]:
    latents = np.concatenate(
        [features.run("extract", frames=frame[np.newaxis])["latents"] for frame in golden["frames"]]
    )
    yield compare("latents", latents, golden["latents"])
    classes, counts = golden["classes"], golden["counts"]
    one_hot = np.eye(counts.shape[1], dtype=np.float32)
    # From here on the golden latents go in, so that an error does not travel.
    latents = golden["latents"]
    before = head.run("infer", latents=latents)["probabilities"]
    yield compare("probabilities before training", before, golden["probabilities_before"])
    before_training = head.run("save")
    rates = {name: golden[name] for name in RATES if name in head.signatures["train"].inputs}
    losses = []
    for session, given in enumerate((trunk_resting(rates), rates)):
        head.run("begin", counts=counts[session], head_start=golden["head_start"])
        for row in golden["rows"][session]:
            batch = {"latents": latents[row], "targets": one_hot[classes[row]]}
            losses.append(head.run("train", **batch, **given)["loss"])
        head.run("consolidate", counts=counts[session])
    name = f"losses of {len(losses)} steps in {len(counts)} sessions"
    yield compare(name, np.array(losses), golden["losses"].reshape(-1))
    after = head.run("infer", latents=latents)["probabilities"]
    yield compare("probabilities after training", after, golden["probabilities_after"])
    yield same_changes("state after training", golden, "change", before_training, head.run("save"))
    if "adapt" in features.signatures:
        moments = features.run("save")
        features.run("adapt", frames=golden["frames"][golden["group"]], rate=golden["adapt_rate"])
        yield same_changes("moments after adapting", golden, "moved", moments, features.run("save"))


def trunk_resting(rates: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The rates of the first golden session."""
    return {
        name: np.zeros_like(rate) if name in TRUNK_RATES else rate for name, rate in rates.items()
    }


def sample(values: NDArray[Any]) -> NDArray[Any]:
    """Up to SAMPLED values of an array, evenly spread."""
    flat = values.reshape(-1)
    count = min(SAMPLED, len(flat))
    chosen: NDArray[Any] = flat[np.arange(count) * (len(flat) - 1) // max(count - 1, 1)]
    return chosen


def same_changes(
    name: str,
    golden: dict[str, NDArray[Any]],
    prefix: str,
    before: dict[str, NDArray[Any]],
    after: dict[str, NDArray[Any]],
) -> Check:
    """Whether every tensor changed as TensorFlow's did; the worst one is named."""
    worst, where = 0.0, ""
    for tensor in before:
        expected = golden[f"{prefix}/{tensor}"]
        found = sample(after[tensor] - before[tensor])
        if found.shape != expected.shape:
            return Check(name, False, f"expected {len(expected)} values of {tensor}")
        if not np.isfinite(found).all():
            return Check(name, False, f"NaN or infinity in {tensor}")
        size = float(np.linalg.norm(expected))
        of_the_change = float(np.linalg.norm(found - expected)) / max(size, FAINTEST_CHANGE)
        if of_the_change > worst:
            worst, where = of_the_change, tensor
    seen = f"{len(before)} tensors, differing by {worst:.1e} of their change at most"
    return Check(name, worst <= OF_A_CHANGE, f"{seen} ({where})" if where else seen)


def compare(name: str, found: NDArray[Any], expected: NDArray[Any]) -> Check:
    """Check values by the largest of them and by themselves."""
    if found.shape != expected.shape:
        return Check(name, False, f"expected shape {expected.shape}, got {found.shape}")
    # uint8 frames, the latents of `images`, would wrap around.
    found, expected = found.astype(np.float64), expected.astype(np.float64)
    worst = float(np.abs(found - expected).max())
    # NaN fails every comparison, as it should.
    tolerance = OF_THE_LARGEST * float(np.abs(expected).max())
    passed = bool(np.allclose(found, expected, rtol=OF_ITSELF, atol=tolerance))
    return Check(name, passed, f"largest difference {worst:.1e}")


def _read_golden(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError) as error:
        raise BundleError(f"Cannot read the golden vectors {path}: {error}") from error


def main(path: str, runtime: str) -> int:
    """`python -m lrtflite.verify BUNDLE RUNTIME`: prints what failed; 0 if nothing did."""
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
