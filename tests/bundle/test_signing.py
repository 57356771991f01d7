"""Signatures: what was verified is what is loaded, and nothing else opens."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from learning import TRAINING, latents_of
from lrtflite import Learner
from lrtflite.bundle.bundle import Bundle
from lrtflite.bundle.signing import make_keys, sign_bundle
from lrtflite.errors import BundleError, InputError, MissingExtra
from lrtflite.verification import trial
from lrtflite.verification.verify import verify_bundle
from lrtflite_cli.group import cli

pytest.importorskip("cryptography", reason="needs the extra sign")


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    make_keys(tmp_path / "key", tmp_path / "key.pub")
    return tmp_path / "key", tmp_path / "key.pub"


@pytest.fixture
def signed(demo: Path, tmp_path: Path, keys: tuple[Path, Path]) -> Path:
    folder = shutil.copytree(demo, tmp_path / "bundle")
    sign_bundle(folder, keys[0])
    return folder


def test_a_private_key_is_private(keys: tuple[Path, Path]) -> None:
    assert stat.S_IMODE(keys[0].stat().st_mode) == 0o600
    with pytest.raises(InputError, match="which exists; choose another"):
        make_keys(*keys)


def test_a_signed_bundle_learns_and_verifies(
    signed: Path, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    with Learner.open(signed, tmp_path / "state", require_signature=keys[1]) as learner:
        learner.learn_latents(latents_of(0), "cup", training=TRAINING)
        expected = learner.probabilities(latents_of(0, 3))
    with Learner.open(signed, tmp_path / "state") as learner:
        np.testing.assert_array_equal(learner.probabilities(latents_of(0, 3)), expected)
    checks = verify_bundle(signed, require_signature=keys[1])
    assert checks[0].name == "signature"
    assert all(check.passed for check in checks)


def test_a_taught_bundle_is_signed_again(
    signed: Path, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    with Learner.open(signed, require_signature=keys[1]) as learner:
        learner.learn_latents(latents_of(0), "cup", training=TRAINING)
        learner.ship(tmp_path / "taught")
    with pytest.raises(BundleError, match=r"without manifest\.sig"):
        Learner.open(tmp_path / "taught", require_signature=keys[1])
    sign_bundle(tmp_path / "taught", keys[0])
    with Learner.open(tmp_path / "taught", require_signature=keys[1]) as learner:
        assert learner.learned == ("cup",)


def test_the_bytes_that_were_verified_are_those_that_are_loaded(
    signed: Path, keys: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process, in the child that tries the models first, and in a shipped bundle."""
    monkeypatch.setattr(trial, "passed", set())
    bundle = Bundle.open(signed, require_signature=keys[1])
    for name in ("manifest.json", *bundle.manifest.files):
        (signed / name).write_bytes(b"exchanged after the check")
    with Learner.open(bundle, require_signature=keys[1]) as learner:
        learner.learn_latents(latents_of(0), "cup", training=TRAINING)
        assert learner.learned == ("cup",)
        learner.ship(tmp_path / "taught")
    sign_bundle(tmp_path / "taught", keys[0])
    with Learner.open(tmp_path / "taught", require_signature=keys[1]) as learner:
        assert learner.learned == ("cup",)


def test_a_key_may_be_a_link(signed: Path, keys: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "link.pub").symlink_to(keys[1])
    assert Bundle.open(signed, require_signature=tmp_path / "link.pub").contents


def test_any_change_is_found(signed: Path, keys: tuple[Path, Path], tmp_path: Path) -> None:
    manifest = signed / "manifest.json"
    whole = manifest.read_text()
    manifest.write_text(json.dumps({**json.loads(whole), "policy": "balanced"}))
    with pytest.raises(BundleError, match=r"Expected a signature of .* got another one"):
        Learner.open(signed, require_signature=keys[1])
    manifest.write_text(whole)
    make_keys(tmp_path / "other", tmp_path / "other.pub")
    with pytest.raises(BundleError, match="give its maker's key"):
        Learner.open(signed, require_signature=tmp_path / "other.pub")
    (signed / "manifest.sig").write_bytes(b"short")
    with pytest.raises(BundleError, match="got another one"):
        Learner.open(signed, require_signature=keys[1])
    head = signed / "head.tflite"
    sign_bundle(signed, keys[0])
    head.write_bytes(head.read_bytes()[:-1] + b"\1")
    with pytest.raises(BundleError, match="SHA-256"):
        Learner.open(signed, require_signature=keys[1])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("sign {bundle} --key {bundle}/nokey", "Expected a private key in .* No such file"),
        ("sign {bundle} --key {public}", "Expected a private key in"),
        ("verify {bundle} --require-signature {private}", "Expected a public key in"),
        ("verify {demo} --require-signature {public}", "without manifest.sig"),
        ("sign {bundle}/none --key {private}", "which is not there"),
        ("keygen {private}", "which exists"),
    ],
)
def test_bad_input_gets_one_line(
    demo: Path, signed: Path, keys: tuple[Path, Path], words: str, said: str
) -> None:
    names = {"bundle": signed, "demo": demo, "private": keys[0], "public": keys[1]}
    done = CliRunner().invoke(cli, words.format(**names).split())
    with pytest.raises((BundleError, InputError), match=said) as caught:
        raise done.exception or AssertionError(done.output)
    assert "\n" not in str(caught.value)


def test_without_the_extra(
    signed: Path, keys: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = __import__("importlib.util").util.find_spec
    monkeypatch.setattr(
        "lrtflite.system.extras.find_spec",
        lambda name: None if name == "cryptography" else real(name),
    )
    with pytest.raises(MissingExtra, match=r"pip install .*\[sign\]'"):
        Learner.open(signed, require_signature=keys[1])
