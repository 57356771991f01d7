"""A plugin's policy, codec, head and network work from `convert` to `simulate`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from coloured_pictures import draw_pictures
from lrtflite.replay.policies import POLICIES

HERE = Path(__file__).parent
CLASSES = 4


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user of the plugin would."""
    paths = [str(HERE), *(path for path in sys.path if path)]
    environment = {**os.environ, "LRTFLITE_PLUGINS": "sample_plugin"}
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    return subprocess.run(
        [sys.executable, "-m", "lrtflite_cli.main", *map(str, words)],
        capture_output=True,
        text=True,
        env=environment,
    )


def succeed(*words: str | Path) -> str:
    done = run(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"folder:{draw_pictures(tmp_path_factory.mktemp('data'), classes=CLASSES, images=12)}"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a bundle of the plugin's network, head, policy and codec."""
    out = tmp_path_factory.mktemp("plugins") / "bundle"
    source = ("--network", "two-units", "--input-size", "48", "--classes", "8")
    learning = ("--strategy", "nearest-mean", "--policy", "ring", "--codec", "bytes")
    succeed("convert", *source, *learning, "--replay-size", "20", "--out", out)
    return out


def simulated(bundle: Path, data: str, *words: str) -> dict[str, Any]:
    how = ("--dataset", data, "--first-classes", "2", "--json", "-")
    found: dict[str, Any] = json.loads(succeed("simulate", bundle, *how, *words))
    return found


def test_a_head_codec_policy_and_network_of_their_own(bundle: Path, data: str) -> None:
    result = simulated(bundle, data)
    assert result["policy"] == "ring"
    # 20 latents of 32 values, one byte each, with a scale of eight bytes, and a class slot and a
    # mark of four bytes each.
    assert result["replay_bytes"] == 20 * (32 + 8 + 8)
    # Random convolutions tell four colours apart.
    assert result["final_accuracy"] > 0.9
    # Sums are kept, so nothing is trained and nothing replayed.
    assert {"gather", "consolidate"} <= set(result["latency_ms"])
    assert "train" not in result["latency_ms"]


def test_the_plugins_network_trains_with_the_built_in_strategy(tmp_path: Path, data: str) -> None:
    out = tmp_path / "deep"
    source = ("--network", "two-units", "--input-size", "48", "--classes", "8")
    batch = ("--batch-size", "16", "--replay-layer", "first", "--codec", "bytes")
    succeed("convert", *source, *batch, "--out", out)
    manifest = json.loads((out / "manifest.json").read_text())
    assert (manifest["strategy"], manifest["trains_trunk"]) == ("ar1free", True)
    result = simulated(out, data, "--sessions", "2", "--replay-size", "10")
    # Latents of 24 x 24 x 8 values, with a scale, a class slot and a mark, as above.
    assert result["replay_bytes"] == 10 * (24 * 24 * 8 + 8 + 8)


def test_an_activation_cannot_be_chosen_for_it(tmp_path: Path) -> None:
    done = run("convert", "--network", "two-units", "--activation", "relu", "--out", tmp_path / "b")
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    expected = "Expected a network whose activation can be chosen, got two-units; leave --activ"
    assert expected in done.stderr


@pytest.mark.parametrize("runtime", ["litert", "tflite"])
def test_it_verifies_on_both_runtimes(bundle: Path, runtime: str) -> None:
    from lrtflite.runtime.model import installed_runtimes

    if runtime not in installed_runtimes():
        pytest.skip(f"the runtime {runtime} is not installed")
    assert "FAIL" not in succeed("verify", bundle, "--runtime", runtime)


def test_a_bundle_of_a_plugin_says_what_is_missing_without_it(bundle: Path, data: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lrtflite_cli.main", "simulate", str(bundle), "--dataset", data],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    assert done.returncode == 1
    assert f"Expected a policy of {', '.join(POLICIES)}, got 'ring'" in done.stderr
    assert "Traceback" not in done.stderr


def test_each_entry_is_short() -> None:
    for path in (HERE / "sample_plugin").glob("*.py"):
        code = [line for line in path.read_text().splitlines() if line.strip()]
        assert len(code) < 40, path.name
