"""A part of each class's own covariance in the scores of `lda`: a prototype in numpy.

A is the covariance of all classes, as `lda` shrinks it, and S_c that of class c alone. Scores are
those of (1 - a) A + a S_c, with all directions of S_c ("full") or its strongest ones ("rank 5"),
found after whitening with A. "Raw" directions are those of S_c before whitening, which a sketch of
each class could keep online; "in the discriminants" keeps only what lies in the space that the
weights of all classes span. All patterns are kept, so this is the most that a bundle could gain.
The last lines give the time of conjugate gradients for the weights alone, and for the weights and
five directions of each class.

    python benchmarks/class_covariance.py photographs shifted [--network mobilenet_v2] [--seeds 0]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from bundles import WEIGHTS
from intervals import shown
from numpy.typing import NDArray
from replay_layers import CASES, Case
from two_layers import bundle_of_one, latents
from worlds import World

from lrtflite.workbench.metrics import accuracy

Array = NDArray[np.float64]
VARIANTS = ("full", "rank 5", "rank 2", "rank 5, raw", "rank 5, in the discriminants")
MIXES = (0.05, 0.1)
STEPS = 40


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", choices=("photographs", "shifted"), nargs="+")
    parser.add_argument("--network", choices=WEIGHTS, default="mobilenet_v1")
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument("--runtime", default="auto")
    arguments = parser.parse_args()
    for name in arguments.cases:
        for line in rows(name, CASES[name].of_network(arguments.network), arguments):
            print(line, flush=True)


def rows(name: str, case: Case, arguments: argparse.Namespace) -> Iterator[str]:
    found: dict[str, list[float]] = {}
    for seed in arguments.seeds or case.seeds:
        world = latents(case, crops=False, seed=seed, visits=2, runtime=arguments.runtime)
        form = Form.of(world, bundle_of_one(case).manifest.latent_shape[0])
        for key, answers in form.answers():
            found.setdefault(key, []).append(accuracy(answers, world.test_labels))
    base = found["lda"]
    for key, values in found.items():
        difference = shown(values, base) if key != "lda" and len(values) > 1 else ""
        each = " ".join(f"{value:.3f}" for value in values)
        yield f"| {name}, {case.network}, {key} | {each} | {np.mean(values):.4f} | {difference} |"
    few, many = (timed(form, count) for count in (50, 300))
    yield f"{name}: {1e3 * few:.0f} ms for 50 systems, {many / few:.1f} times that for 300"


@dataclass(frozen=True)
class Form:
    """Patterns whitened with A: those taught, by class, their means, and those to judge."""

    taught: list[Array]
    means: Array
    judged: Array
    whitening: Array
    raw: list[Array]
    covariance: Array

    @classmethod
    def of(cls, world: World, features: int) -> Form:
        train = transformed(np.concatenate([found for found, _ in world.sessions])[:, :features])
        labels = np.concatenate([slots for _, slots in world.sessions])
        kinds = np.unique(labels)
        raw = [train[labels == kind] for kind in kinds]
        centred = [part - part.mean(axis=0) for part in raw]
        within = sum((part.T @ part for part in centred), np.zeros((features, features)))
        within /= len(train)
        share = features / (features + len(train))
        covariance = (1 - share) * within + share * np.trace(within) / features * np.eye(features)
        whitening = np.linalg.inv(np.linalg.cholesky(covariance)).T
        taught = [part @ whitening for part in raw]
        means = np.stack([part.mean(axis=0) for part in taught])
        judged = transformed(world.test[:, :features]) @ whitening
        return cls(taught, means, judged, whitening, centred, covariance)

    def answers(self) -> Iterator[tuple[str, NDArray[np.intp]]]:
        """Yield the answers of `lda`, and of each variant and mix."""
        distances = np.square(self.judged[:, None] - self.means[None]).sum(axis=2)
        yield "lda", distances.argmin(axis=1)
        for variant in VARIANTS:
            kept = [self.directions(kind, variant) for kind in range(len(self.taught))]
            for mix in MIXES:
                scores = np.empty_like(distances)
                for kind, (directions, variances) in enumerate(kept):
                    along = np.square((self.judged - self.means[kind]) @ directions.T)
                    less = 1 / (1 - mix) - 1 / (1 - mix + mix * variances)
                    scores[:, kind] = distances[:, kind] / (1 - mix) - along @ less
                    scores[:, kind] += np.log1p(mix / (1 - mix) * variances).sum()
                yield f"{variant}, {mix:g}", scores.argmin(axis=1)

    def directions(self, kind: int, variant: str) -> tuple[Array, Array]:
        """Return directions of a class in whitened space (r, F), and the variances along them."""
        offsets = self.taught[kind] - self.means[kind]
        if "discriminants" in variant:
            basis = np.linalg.svd(self.means - self.means.mean(axis=0), full_matrices=False)[2]
            offsets = offsets @ basis[:-1].T @ basis[:-1]
        if "raw" in variant:
            strongest = np.linalg.svd(self.raw[kind], full_matrices=False)[2][:5]
            offsets = offsets @ orthonormal(strongest @ self.whitening)
        found = np.linalg.svd(offsets, full_matrices=False)
        rank = None if variant == "full" else int(variant.split()[1].rstrip(","))
        variances = np.square(found[1]) / len(offsets)
        return found[2][:rank], variances[:rank]


def orthonormal(rows_: Array) -> Array:
    """Return the projection (F, F) onto the space of some rows."""
    basis = np.linalg.qr(rows_.T)[0]
    projection: Array = basis @ basis.T
    return projection


def transformed(x: NDArray[np.float32]) -> Array:
    root = np.sqrt(np.maximum(x.astype(np.float64), 0))
    unit: Array = root / np.linalg.norm(root, axis=1, keepdims=True)
    return unit


def timed(form: Form, count: int) -> float:
    """Return the seconds of conjugate gradients for so many systems, in float32."""
    matrix = form.covariance.astype(np.float32)
    targets = np.random.default_rng(0).normal(size=(count, len(matrix))).astype(np.float32)
    x, r = np.zeros_like(targets), targets.copy()
    p, power = r, np.square(r).sum(axis=1, keepdims=True)
    started = time.perf_counter()
    for _ in range(STEPS):
        q = p @ matrix
        size = power / (p * q).sum(axis=1, keepdims=True)
        x, r = x + size * p, r - size * q
        after = np.square(r).sum(axis=1, keepdims=True)
        p, power = r + after / power * p, after
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
