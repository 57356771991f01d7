"""Learners on MobileNetV2 bundles: golden vectors and sessions on both runtimes."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from lrtflite import Learner
from lrtflite.verify import verify_bundle
from mobilenet_v2_bundles import BUNDLES, SIZE

ROOT = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with small bundles of MobileNetV2."""
    # Found, not imported: TensorFlow and a TFLite runtime in one process can crash.
    if find_spec("tensorflow") is None:
        pytest.skip("needs the extra host, to convert bundles")
    folder = tmp_path_factory.mktemp("mobilenet_v2")
    script = str(ROOT / "mobilenet_v2_bundles.py")
    done = subprocess.run([sys.executable, script, str(folder)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


def frames(kind: int, *, seed: int, count: int = 8) -> np.ndarray:
    """Return noisy frames of one class, each with stripes of its own colours."""
    rng = np.random.default_rng((seed, kind))
    picture = np.random.default_rng(kind).integers(0, 256, (1, 1, SIZE // 4, 3))
    stripes = np.repeat(picture, 4, axis=2)
    noise = rng.normal(0, 8, (count, SIZE, SIZE, 3))
    return np.clip(stripes + noise, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("name", BUNDLES)
def test_golden_vectors(bundles: Path, name: str, runtime: str) -> None:
    failed = [each for each in verify_bundle(bundles / name, runtime=runtime) if not each.passed]
    assert failed == []


@pytest.mark.parametrize("name", BUNDLES)
def test_sessions_are_learned(bundles: Path, name: str, runtime: str) -> None:
    with Learner.open(bundles / name, runtime=runtime, threads=1, seed=0) as learner:
        training = learner.training.with_options(least_steps=8)
        for kind in range(3):
            latents = learner.extract(frames(kind, seed=1))
            # Latents of a linear bottleneck have both signs.
            assert (latents.min() < 0) == (name != "last")
            learner.learn_latents(latents, f"thing {kind}", training=training)
        probes = np.concatenate([frames(kind, seed=2, count=4) for kind in range(3)])
        found = learner.probabilities(learner.extract(probes)).argmax(axis=1)
    assert (found == np.repeat(range(3), 4)).mean() >= 0.75
