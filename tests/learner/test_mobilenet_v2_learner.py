"""Learners on bundles of residual blocks: golden vectors and sessions on both runtimes."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from lrtflite import Learner
from lrtflite.verification.verify import verify_bundle
from mobilenet_v2_bundles import BUNDLES, SIZE

pytestmark = pytest.mark.slow

SUPPORT = Path(__file__).resolve().parents[1] / "support"


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with small bundles."""
    # Found, not imported: TensorFlow and a TFLite runtime in one process can crash.
    if find_spec("tensorflow") is None:
        pytest.skip("needs the extra host, to convert bundles")
    folder = tmp_path_factory.mktemp("mobilenet_v2")
    script = str(SUPPORT / "mobilenet_v2_bundles.py")
    done = subprocess.run([sys.executable, script, str(folder)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


@pytest.mark.parametrize("name", BUNDLES)
def test_golden_vectors(bundles: Path, name: str, runtime: str) -> None:
    failed = [each for each in verify_bundle(bundles / name, runtime=runtime) if not each.passed]
    assert failed == []


def cloud(learner: Learner, kind: int, *, seed: int, count: int = 8) -> np.ndarray:
    """Return latents of one class, (count, ...) float32, with both signs if the layer has them."""
    manifest = learner.bundle.manifest
    centre = np.random.default_rng(100 + kind).normal(0, 2, manifest.latent_shape)
    noise = np.random.default_rng((seed, kind)).normal(0, 0.3, (count, *manifest.latent_shape))
    return np.clip(centre + noise, *manifest.latent_range).astype(np.float32)


@pytest.mark.parametrize("name", BUNDLES)
def test_sessions_are_learned(bundles: Path, name: str, runtime: str) -> None:
    with Learner.open(bundles / name, runtime=runtime, threads=1, seed=0) as learner:
        frames = np.random.default_rng(0).integers(0, 256, (4, SIZE, SIZE, 3)).astype(np.uint8)
        # Latents of a linear bottleneck have both signs.
        assert (learner.extract(frames).min() < 0) == (name != "last")
        latents = np.concatenate([cloud(learner, kind, seed=1) for kind in range(3)])
        learner.learn_latents(latents, [f"thing {kind}" for kind in range(3) for _ in range(8)])
        learner.learn_latents(cloud(learner, 3, seed=1), "thing 3")
        probes = np.concatenate([cloud(learner, kind, seed=2) for kind in range(4)])
        answers = learner.answers(probes)
    found = answers.probabilities.argmax(axis=1)
    assert (found == np.repeat(range(4), 8)).mean() >= 0.9
    if name == "signed":
        # The bundle's threshold is between patterns like those taught and those of the other signs.
        with Learner.open(bundles / name, runtime=runtime, threads=1, seed=0) as learner:
            learner.learn_latents(latents, [f"thing {k}" for k in range(3) for _ in range(8)])
            own = learner.answers(cloud(learner, 0, seed=2)).familiarity
            other = learner.answers(-cloud(learner, 0, seed=2)).familiarity
        assert own is not None
        assert other is not None
        threshold = learner.bundle.manifest.unknown
        assert threshold is not None
        assert other.max() < threshold < own.min()
