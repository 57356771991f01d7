"""A network with ReLU: its latents have no limit of 6, in every file and on both runtimes."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

from lrtflite import Bundle, Learner
from lrtflite.errors import InputError
from lrtflite.replay.codecs import CODECS
from lrtflite.verification.verify import verify_bundle
from relu_bundles import BUNDLES

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if find_spec("tensorflow") is None:
        pytest.skip("needs the extra host, to convert bundles")
    folder = tmp_path_factory.mktemp("relu")
    command = [sys.executable, str(TESTS / "support" / "relu_bundles.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


@pytest.fixture(scope="module")
def expected(bundles: Path) -> dict[str, np.ndarray]:
    """Return frames, and their latents from Keras; a good share of these is above 6."""
    with np.load(bundles / "expected.npz") as file:
        found = {name: file[name] for name in file.files}
    assert (found["latents"] > 6).mean() > 0.05
    return found


@pytest.mark.parametrize("name", BUNDLES)
def test_golden_vectors(bundles: Path, name: str, runtime: str) -> None:
    failed = [each for each in verify_bundle(bundles / name, runtime=runtime) if not each.passed]
    assert failed == []


def test_latents_are_those_of_keras(
    bundles: Path, expected: dict[str, np.ndarray], runtime: str
) -> None:
    with Learner.open(bundles / "float", runtime=runtime) as learner:
        found = learner.extract(expected["frames"])
    largest = expected["latents"].max()
    np.testing.assert_allclose(found, expected["latents"], rtol=1e-4, atol=1e-5 * largest)


def test_int8_latents_reach_above_6(
    bundles: Path, expected: dict[str, np.ndarray], runtime: str
) -> None:
    """A fixed scale of 6 / 255 would stand for 6 at most."""
    with Learner.open(bundles / "int8", runtime=runtime) as learner:
        manifest = learner.bundle.manifest
        found = manifest.real(learner.extract(expected["frames"]))
    assert manifest.quantisation is not None
    assert (manifest.latent_range, manifest.quantisation.zero_point) == ((-128, 127), -128)
    assert 255 * manifest.quantisation.scale > 1.5 * 6
    above = expected["latents"] > 6
    # Random weights lose much in int8; with a limit of 6, the mean could not be more than that.
    assert found[above].mean() > 6


def test_the_manifest_says_so(bundles: Path, expected: dict[str, np.ndarray]) -> None:
    manifest = Bundle.open(bundles / "float").manifest
    low, high = manifest.latent_range
    assert low == 0
    assert high > expected["latents"].max()
    assert manifest.backbone.startswith("MobileNetV1 alpha 0.0625 with ReLU, theirs.npz (sha256 ")


def test_only_latents_beyond_the_range_are_refused(
    bundles: Path, demo: Path, expected: dict[str, np.ndarray], tmp_path: Path
) -> None:
    latents = expected["latents"]
    with Learner.open(bundles / "float", tmp_path / "state") as learner:
        learner.learn_latents(latents, ["cup"] * 4 + ["hat"] * 4)
        before = learner.probabilities(latents)
        high = learner.bundle.manifest.latent_range[1]
        for value in (1.01 * high, np.inf, -0.1 * high, np.nan):
            wrong = latents.copy()
            wrong[3, 0, 0, 0] = value
            with pytest.raises(InputError, match=re.escape(f"from 0 to {high:g}, the range of")):
                learner.learn_latents(wrong, "ball")
        np.testing.assert_array_equal(learner.probabilities(latents), before)
        assert list(learner.learned) == ["cup", "hat"]
    # A bundle of a network with ReLU6 refuses what it cannot have extracted.
    with Learner.open(demo) as learner:
        seven = np.full((1, *learner.bundle.manifest.latent_shape), 7.0, np.float32)
        with pytest.raises(InputError, match=r"from 0 to 6, the range of pool6, got 7"):
            learner.learn_latents(seven, "ball")


def test_one_byte_per_value_stays_within_its_step(
    bundles: Path, expected: dict[str, np.ndarray], tmp_path: Path
) -> None:
    """The sample codec of plugins, in the memory of a learner and in its state on disk."""
    spec = spec_from_file_location("codec", TESTS / "plugins" / "sample_plugin" / "codec.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = tmp_path / "bundle"
    folder.mkdir()
    for file in (bundles / "float").iterdir():
        text = file.read_bytes()
        if file.name == "manifest.json":
            text = text.replace(b'"codec": "raw"', b'"codec": "bytes"')
        (folder / file.name).write_bytes(text)
    latents = expected["latents"]
    with CODECS.registered("bytes", module.Bytes):
        for learns in (True, False):
            with Learner.open(folder, tmp_path / "state") as learner:
                if learns:
                    learner.learn_latents(latents, "cup")
                assert learner.memory.codes.dtype == np.uint8
                stored = learner.memory.latents(np.arange(len(latents)))
            for latent in latents:
                off = np.abs(stored - latent).reshape(len(stored), -1).max(axis=1)
                assert off.min() <= 0.501 * (latent.max() - latent.min()) / 255
