"""A learner of an int8 bundle: int8 latents in the memory, on disk and in every signature."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from lrtflite import Bundle, Learner
from lrtflite.errors import InputError
from lrtflite.verification.verify import verify_bundle
from quantised_bundles import BUNDLES, waves

pytestmark = pytest.mark.slow

SUPPORT = Path(__file__).parents[1] / "support"


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if find_spec("tensorflow") is None:
        pytest.skip("needs the extra host, to convert bundles")
    folder = tmp_path_factory.mktemp("quantised")
    command = [sys.executable, str(SUPPORT / "quantised_bundles.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


@pytest.mark.parametrize("name", BUNDLES)
def test_both_runtimes_agree_with_the_golden_vectors(
    bundles: Path, name: str, runtime: str
) -> None:
    checks = verify_bundle(bundles / name, runtime=runtime)
    assert [check for check in checks if not check.passed] == []
    (latents,) = [check for check in checks if check.name == "latents"]
    assert latents.seen.endswith("of their size")


@pytest.mark.parametrize("name", BUNDLES)
def test_the_manifest(bundles: Path, name: str) -> None:
    manifest = Bundle.open(bundles / name).manifest
    assert (manifest.latent_dtype, manifest.train_dtype) == ("int8", "int8")
    assert manifest.latent_range == (-128, 127)
    assert manifest.latent_bytes == np.prod(manifest.latent_shape)
    found = manifest.quantisation
    assert found is not None
    # The latents follow a ReLU6, so the smallest int8 value stands for 0, and 255 steps for 6.
    assert (found.zero_point, found.mode) == (-128, "int8")
    assert 0 < found.scale <= 6 / 255 * 1.001
    assert manifest.files["features.tflite"].bytes == found.int8_bytes
    versions = {op.rpartition(" ")[0]: op for op in manifest.ops["features.tflite"]}
    assert versions["CONV_2D"] == "CONV_2D v3"  # the version of int8


@pytest.mark.parametrize("name", BUNDLES)
def test_a_session_is_saved_and_restored(
    bundles: Path, name: str, runtime: str, tmp_path: Path
) -> None:
    frames = waves(8, seed=5)
    labels = ["cup"] * 4 + ["hat"] * 4
    with Learner.open(bundles / name, tmp_path / "s", runtime=runtime) as learner:
        latents = learner.extract(frames)
        assert latents.dtype == np.int8
        learner.learn(frames, labels)
        before = learner.probabilities(latents)
        stored = learner.memory.codes
        assert stored.dtype == np.int8
        row = int(np.prod(latents.shape[1:])) + 2 * 4  # one byte per value, a slot and a mark
        assert learner.memory.nbytes == len(learner.memory) * row
    with Learner.open(bundles / name, tmp_path / "s", runtime=runtime) as again:
        np.testing.assert_array_equal(again.memory.codes, stored)
        np.testing.assert_array_equal(again.probabilities(latents), before)
        assert list(again.learned) == ["cup", "hat"]
        again.learn(waves(3, seed=6), ["ball"] * 3, diagnose=True)
        assert list(again.learned) == ["cup", "hat", "ball"]
        again.forget("hat")
        assert list(again.learned) == ["cup", "ball"]


def test_it_learns(bundles: Path) -> None:
    """Check that taught frames get their own answers; the backbone has random weights."""
    kinds = waves(3, seed=11)
    with Learner.open(bundles / "closed") as learner:
        for number, kind in enumerate(kinds):
            learner.learn(np.stack([kind] * 8), f"kind {number}")
        answers = learner.predict(kinds, top=1)
    assert [each[0].label for each in answers] == ["kind 0", "kind 1", "kind 2"]


def test_float_latents_are_refused(bundles: Path) -> None:
    with Learner.open(bundles / "closed") as learner:
        latents = np.zeros((1, *learner.bundle.manifest.latent_shape), np.float32)
        with pytest.raises(InputError, match=r"of int8 with n of at least 1, got .* float32"):
            learner.learn_latents(latents, "cup")


@pytest.mark.parametrize("policy", ["herding", "reservoir"])
def test_policies_on_int8_latents(bundles: Path, policy: str) -> None:
    with Learner.open(bundles / "closed", policy=policy, replay_size=6) as learner:
        frames = waves(8, seed=5)
        learner.learn(frames, ["cup"] * 4 + ["hat"] * 4)
        assert len(learner.memory) == 6
        real = learner.bundle.manifest.real(learner.extract(frames))
        assert real.min() >= 0
