"""The quantisation of a manifest as a value, and what it means for latents."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lrtflite.bundle.bundle import Bundle
from lrtflite.bundle.manifest import Manifest
from lrtflite.bundle.manifest_json import read_manifest
from lrtflite.bundle.quantisation import Quantisation
from lrtflite.contract.comparison import compare_rounded
from lrtflite.errors import BundleError
from lrtflite.replay.codecs import LatentForm
from lrtflite.replay.memory import ReplayMemory
from lrtflite.session.diagnosis import to_vectors

FOUND = Quantisation(
    mode="int8",
    scale=0.5,
    zero_point=-128,
    calibration="folder:things",
    frames=200,
    epochs=0,
    snr_db=24.1,
    agreement=0.96,
    float_bytes=12_800_000,
    int8_bytes=3_510_000,
    runtime="1.14.0",
)


@pytest.fixture
def manifest(demo: Path) -> Manifest:
    changes: dict[str, Any] = {"latent_dtype": "int8", "train_dtype": "int8"}
    return dataclasses.replace(Bundle.open(demo).manifest, quantisation=FOUND, **changes)


def test_a_latent_stands_for_its_distance_from_the_zero_point(manifest: Manifest) -> None:
    latents = np.array([[-128, -126, 127]], np.int8)
    expected = np.array([[0.0, 1.0, 127.5]], np.float32)
    np.testing.assert_array_equal(FOUND.real(latents), expected)
    np.testing.assert_array_equal(manifest.real(latents), expected)
    assert manifest.latent_form.zero == -128
    floats = np.array([[1.5]], np.float32)
    plain = dataclasses.replace(manifest, quantisation=None)
    assert plain.real(floats) is floats
    assert plain.latent_form.zero == 0


def test_the_manifest_keeps_it(manifest: Manifest) -> None:
    assert read_manifest(manifest.to_json(), where="here") == manifest
    none = dataclasses.replace(FOUND, agreement=None)
    changed = dataclasses.replace(manifest, quantisation=none)
    assert read_manifest(changed.to_json(), where="here").quantisation == none


def test_a_float_bundle_has_no_such_field(demo: Path) -> None:
    """Check that older versions still read float bundles, and this one theirs."""
    manifest = Bundle.open(demo).manifest
    assert manifest.quantisation is None
    assert "quantisation" not in json.loads(manifest.to_json())
    fields = {**json.loads(manifest.to_json()), "quantisation": None}
    assert read_manifest(json.dumps(fields), where="here") == manifest


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"scale": 0}, "scale is 0"),
        ({"scale": "much"}, "Expected scale as a number"),
        ({"zero_point": 128}, "zero_point as a whole number from -128 to 127, got 128"),
        ({"zero_point": 0.5}, "zero_point as a whole number"),
        ({"mode": 8}, "mode is 8"),
        ({"agreement": 2}, "agreement as a number from 0 to 1, got 2"),
    ],
)
def test_a_damaged_one_is_named(manifest: Manifest, changes: Any, problem: str) -> None:
    fields = json.loads(manifest.to_json())
    fields["quantisation"].update(changes)
    with pytest.raises(BundleError, match=f"Damaged field in here: .*{problem}"):
        read_manifest(json.dumps(fields), where="here")


def test_unknown_fields_are_ignored(manifest: Manifest) -> None:
    fields = json.loads(manifest.to_json())
    fields["quantisation"]["later"] = {"than": "this version"}
    assert read_manifest(json.dumps(fields), where="here") == manifest


def test_int8_latents_need_it(manifest: Manifest) -> None:
    fields = json.loads(manifest.to_json())
    del fields["quantisation"]
    with pytest.raises(BundleError, match="'int8' in a bundle that has no quantisation"):
        read_manifest(json.dumps(fields), where="here")
    fields = {**json.loads(manifest.to_json()), "latent_dtype": "float32"}
    with pytest.raises(BundleError, match="'float32' in a bundle that has a quantisation"):
        read_manifest(json.dumps(fields), where="here")


def test_in_words() -> None:
    assert str(FOUND) == (
        "features.tflite 12.80 MB as float, 3.51 MB as int8 (3.65 times smaller); latents with a "
        "signal-to-noise ratio of 24.1 dB; 96.0 % of the predictions agree (int8, 200 frames of "
        "folder:things)"
    )
    tuned = dataclasses.replace(FOUND, mode="qat", epochs=3, agreement=None)
    assert "agreement not measured" in str(tuned)
    assert "(qat, 3 epochs of fine-tuning, 200 frames" in str(tuned)


def test_int8_latents_are_compared_as_vectors() -> None:
    expected = np.array([[-128, 72, -28, -28]], np.int8)  # 0, 200, 100, 100: a length of 245
    near = expected + np.array([[1, -20, 20, 5]], np.int8)  # 28.7
    check = compare_rounded("latents", near, expected, zero_point=-128)
    assert check.passed
    assert check.seen == "1.2e-01 of their size"
    assert not compare_rounded("latents", near + np.int8(30), expected, zero_point=-128).passed
    # Around 0 the same vectors are shorter, and the difference is larger.
    assert not compare_rounded("latents", near, expected, zero_point=-28).passed
    for wrong in (near[:, :2], near.astype(np.float32)):
        assert not compare_rounded("latents", wrong, expected, zero_point=-128).passed


def test_diagnosis_uses_the_values_that_latents_stand_for() -> None:
    np.testing.assert_allclose(to_vectors(np.array([[-119, -112]], np.int8), -128), [[0.6, 0.8]])


def test_herding_uses_the_values_that_latents_stand_for() -> None:
    """Check that an int8 memory keeps what one with the float values keeps."""
    rng = np.random.default_rng(0)
    latents = rng.integers(-128, 0, (12, 5)).astype(np.int8)
    kept = []
    for values, zero in ((latents, -128), (latents.astype(np.float32) + 128, 0)):
        form = LatentForm((5,), values.dtype, values.dtype, (-128, 127), zero)
        memory = ReplayMemory(4, form, policy="herding")
        memory.update(values, np.zeros(12, np.int32), session=1, rng=rng)
        kept.append(memory.codes.astype(int) - zero)
    np.testing.assert_array_equal(kept[0], kept[1])
