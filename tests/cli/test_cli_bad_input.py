"""Bad input through the real command line: one line that says what to do, and an exit code."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lrtflite.bundle.manifest import BUNDLE_FORMAT
from lrtflite.networks.architecture import NETWORKS
from lrtflite.replay.codecs import CODECS
from lrtflite.replay.policies import POLICIES
from lrtflite_cli.group import COMMANDS
from lrtflite_converters.request.strategies import STRATEGIES


@pytest.fixture
def bundle(demo: Path, tmp_path: Path) -> Path:
    """Copy the bundle into the test's temporary folder."""
    return Path(shutil.copytree(demo, tmp_path / "mine"))


def truncate(bundle: Path) -> None:
    head = bundle / "head.tflite"
    head.write_bytes(head.read_bytes()[:1000])


def tamper(bundle: Path) -> None:
    content = bytearray((bundle / "features.tflite").read_bytes())
    content[5000] ^= 1
    (bundle / "features.tflite").write_bytes(content)


def remove(bundle: Path) -> None:
    (bundle / "golden.npz").unlink()


def age(bundle: Path) -> None:
    path = bundle / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))


def garble(bundle: Path) -> None:
    (bundle / "manifest.json").write_text('{"format": 1, "labels"')


def empty(bundle: Path) -> None:
    for path in bundle.iterdir():
        path.unlink()


@pytest.mark.parametrize(
    ("command", "damage", "says"),
    [
        ("inspect", truncate, ["head.tflite", "got 1000", "copy the bundle again"]),
        ("inspect", tamper, ["features.tflite", "SHA-256", "copy the bundle again"]),
        ("verify", tamper, ["features.tflite", "SHA-256", "copy the bundle again"]),
        ("verify", remove, ["golden.npz", "No such file", "copy the bundle again"]),
        ("verify", age, [f"format 6 or {BUNDLE_FORMAT}", "format 99", "convert it again"]),
        ("simulate", age, [f"format 6 or {BUNDLE_FORMAT}", "format 99", "convert it again"]),
        ("inspect", garble, ["JSON", "manifest.json"]),
        ("simulate", empty, ["manifest.json", "which has none"]),
    ],
)
def test_a_damaged_bundle(
    bundle: Path,
    error_of: Callable[..., str],
    command: str,
    damage: Callable[[Path], None],
    says: list[str],
) -> None:
    damage(bundle)
    error = error_of(command, "mine")
    for part in says:
        assert part in error


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["inspect", "nowhere"], ["nowhere", "lrtflite convert --replay-layer pool6"]),
        (["verify", "mine", "--runtime", "onnx"], ["auto, litert, tflite", "'onnx'"]),
        (["simulate", "--dataset", "mnist"], ["synthetic", "folder:PATH", "'mnist'"]),
        (["simulate", "--dataset", "synthetic?speed=2"], ["frames, test_frames", "'speed'"]),
        (["simulate", "--dataset", "folder:nowhere"], ["one folder of pictures per class"]),
        (["simulate", "--dataset", "folder:hollow"], ["images or videos", "hollow/mug", "none"]),
        (["simulate", "--json", "mine/head.tflite/x.json"], ["mine/head.tflite"]),
        (["simulate", "--report", "-"], ["file for the report"]),
        (["simulate", "--lr", "nan"], ["lr", "nan"]),
        (["simulate", "--policy", "lifo"], ["policy", "'lifo'", *POLICIES]),
        (["convert", "--policy", "lifo"], ["policy", "'lifo'", *POLICIES]),
        (["convert", "--strategy", "gem"], ["strategy", "'gem'", *STRATEGIES]),
        (["convert", "--codec", "zip"], ["codec", "'zip'", *CODECS]),
        (["simulate", "--rate", "trunk_lr=0.1"], ["Expected a rate of epochs", "got 'trunk_lr'"]),
    ],
)
def test_a_value_that_cannot_be(
    bundle: Path, tmp_path: Path, error_of: Callable[..., str], args: list[str], says: list[str]
) -> None:
    (tmp_path / "hollow" / "mug").mkdir(parents=True)
    error = error_of(*args)
    for part in says:
        assert part in error


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["simulat"], ["Did you mean 'simulate'?", *COMMANDS]),
        (["inspect"], ["'BUNDLE'"]),
        (["verify", "mine", "--fast"], ["--fast"]),
        (["simulate", "--sessions", "0"], ["--sessions", "x>=1"]),
        (["simulate", "--trunk-lr", "0.1"], ["--trunk-lr"]),
    ],
)
def test_wrong_usage(run_cli: Callable[..., Any], args: list[str], says: list[str]) -> None:
    done = run_cli(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: lrtflite")
    for part in says:
        assert part in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("command", ["convert", "layers", "train"])
def test_an_unknown_network_gets_a_suggestion(run_cli: Callable[..., Any], command: str) -> None:
    done = run_cli(command, "--network", "mobilenet-v2")
    known = ", ".join(NETWORKS)
    said = f"Error: Expected a network of {known}, got 'mobilenet-v2'; did you mean 'mobilenet_v2'?"
    assert (done.returncode, done.stderr.strip()) == (1, said)


def test_an_error_after_a_start_is_the_last_line(
    tmp_path: Path, run_cli: Callable[..., Any]
) -> None:
    for name in ("mug", "hat"):
        (tmp_path / "things" / name).mkdir(parents=True)
        for k in range(2):
            Image.new("RGB", (20, 20), (90 * k, 60, 0)).save(
                tmp_path / "things" / name / f"{k}.png"
            )
    done = run_cli("simulate", "--dataset", "folder:things", "--lr", "1e30", "--json", "out.json")
    assert (done.returncode, done.stdout) == (1, "")
    assert "diverged" in done.stderr.splitlines()[-1]
    assert done.stderr.count("Error:") == 1
    assert not (tmp_path / "out.json").exists()


def test_an_unknown_layer_lists_the_layers(error_of: Callable[..., str], tmp_path: Path) -> None:
    error = error_of("convert", "--replay-layer", "mixed_7")
    for part in ("'mixed_7'", "images", "conv1", "conv5_4/dw", "conv6/sep", "pool6"):
        assert part in error
    assert not (tmp_path / "bundle").exists()


@pytest.mark.parametrize(
    ("given", "meant"),
    [("pool7", "pool6"), ("conv5_4dw", "conv5_4/dw"), ("Pool6", "pool6"), ("image", "images")],
)
def test_a_mistyped_layer_is_told_the_likeliest(
    error_of: Callable[..., str], given: str, meant: str
) -> None:
    error = error_of("convert", "--replay-layer", given)
    assert f"got {given!r}; did you mean {meant!r}?" in error
