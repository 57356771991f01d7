"""Compare what a runtime computed with the golden vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.contract.golden import Arrays

# Largest difference allowed, relative to the value itself and to the largest value in its array.
# Each runtime's kernels add up to 10^4 float32 terms in a different order, so sums differ by about
# 1e-5 of their size, and latents pass through 27 layers. A wrong op differs far more.
VALUE_TOLERANCE, LARGEST_TOLERANCE = 1e-3, 1e-4
# Largest difference allowed between latents of a quantised model, relative to their size (both as
# vectors). Each runtime rounds in its own way after every layer; two runtimes differ by 0.03 at 128
# pixels (ImageNet weights), and a wrong op by about 1.
MAX_ROUNDING = 0.2
# Largest difference allowed between two changes of a tensor in training, relative to the size of
# the change (both as vectors). A change is a small difference of large numbers, and many layers
# amplify rounding. A wrong gradient differs by as much as the change itself.
CHANGE_TOLERANCE = 0.1
# Smallest change to divide by. The change of some tensors is 0 in theory, such as the beta of a
# linear unit below another normalisation, so both changes are rounding errors of the values: 1e-6
# at most, as vectors. The golden rates make every other change of a trunk far larger.
FAINTEST_CHANGE = 1e-5


@dataclass(frozen=True)
class Check:
    """The result of one check; `seen` describes it in words."""

    name: str
    passed: bool
    seen: str


def compare_changes(
    name: str, prefix: str, tensors: list[str], found: Arrays, golden: Arrays
) -> Check:
    """Check that every tensor changed as in TensorFlow; name the worst one."""
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


def compare_rounded(
    name: str,
    found: NDArray[Any],
    expected: NDArray[Any],
    *,
    rounding: float = MAX_ROUNDING,
    zero_point: int = 0,
) -> Check:
    """Check latents of a quantised model as vectors, within `rounding` of their size.

    `zero_point` is the value that stands for 0 in int8 latents.
    """
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return Check(
            name,
            False,
            f"expected {expected.shape} {expected.dtype}, got {found.shape} {found.dtype}",
        )
    wanted = expected.astype(np.float64)
    size = max(float(np.linalg.norm(wanted - zero_point)), FAINTEST_CHANGE)
    off = float(np.linalg.norm(found.astype(np.float64) - wanted)) / size
    return Check(name, off <= min(rounding, MAX_ROUNDING), f"{off:.1e} of their size")


def compare(name: str, found: NDArray[Any], expected: NDArray[Any]) -> Check:
    """Check each value relative to itself and to the largest value."""
    if found.shape != expected.shape:
        return Check(name, False, f"expected shape {expected.shape}, got {found.shape}")
    # At `images` latents are uint8 frames, whose differences would wrap around.
    found, expected = found.astype(np.float64), expected.astype(np.float64)
    worst = float(np.abs(found - expected).max(initial=0))
    tolerance = LARGEST_TOLERANCE * float(np.abs(expected).max(initial=0))
    # NaN fails the comparison, as intended.
    passed = bool(np.allclose(found, expected, rtol=VALUE_TOLERANCE, atol=tolerance))
    return Check(name, passed, f"largest difference {worst:.1e}")
