"""`lrtflite convert --replay-layer pool6` and its defaults, driven by a stock interpreter alone."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from lrtflite.bundle.bundle import Bundle
from lrtflite.runtime.model import RUNTIMES

pytestmark = pytest.mark.slow

CLIENT = Path(__file__).parents[1] / "support" / "stock_client.py"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return what the command writes without other options."""
    if find_spec("tensorflow") is None:
        pytest.skip("needs the extra host, to convert a bundle")
    folder = tmp_path_factory.mktemp("mission")
    words = ["convert", "--replay-layer", "pool6"]
    # TensorFlow and a TFLite runtime in one process can crash.
    subprocess.run(
        [sys.executable, "-m", "lrtflite_cli.main", *words],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return folder / "bundle"


def test_the_defaults_of_the_command(bundle: Path) -> None:
    manifest = Bundle.open(bundle).manifest
    assert (manifest.strategy, manifest.replay_layer) == ("cwr", "pool6")
    assert manifest.input_size == 128
    assert "demo backbone" in manifest.backbone
    assert manifest.labels == (None,) * 50


def test_a_stock_interpreter_trains_saves_restores_and_infers(bundle: Path, runtime: str) -> None:
    _, module = RUNTIMES[runtime]
    words = [sys.executable, str(CLIENT), module, str(bundle)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    found = json.loads(done.stdout)
    assert {"train", "save", "restore", "infer"} <= set(found["signatures"])
    assert found["imported"] == []
    # A head that has learned nothing shares its answer among all slots.
    assert found["losses"][0] == pytest.approx(math.log(50), rel=1e-3)
    assert found["losses"][-1] < 0.1 * found["losses"][0]
    assert (found["answered before"], found["answered by a fresh head"]) == (0, 0)
    assert found["learned"] == [0, 7]
    assert found["right"] == 1
    assert found["sum"] == pytest.approx([1, 1], abs=1e-5)
    assert found["same after restore"]
