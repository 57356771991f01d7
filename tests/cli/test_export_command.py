"""`lrtflite export`: bad input is one line and no file; a taught bundle is exported."""

from __future__ import annotations

import json
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lrtflite import Learner
from lrtflite.bundle.bundle import MANIFEST_FILE

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def state(demo: Path, tmp_path: Path) -> Path:
    """Return the state of a learner of the demo bundle that was taught two classes."""
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (8, 128, 128, 3), np.uint8)
    with Learner.open(demo, tmp_path / "state") as learner:
        learner.learn(frames, ["mug", "hat"] * 4)
    return tmp_path / "state"


def pictures(folder: Path, colours: list[int]) -> str:
    for name in ("mug", "hat"):
        (folder / name).mkdir(parents=True)
        for k, colour in enumerate(colours):
            Image.new("RGB", (40, 40), (colour, colour, colour)).save(folder / name / f"{k}.png")
    return f"folder:{folder}"


def refused(run_cli: Run, *words: object) -> str:
    """Run a command that must fail with one line; return the line."""
    done = run_cli("export", *words)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


def test_a_taught_learner(run_cli: Run, demo: Path, state: Path, tmp_path: Path) -> None:
    done = run_cli("export", demo, state, "--out", "deep/er/model.tflite", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["labels"] == ["mug", "hat"]
    made = tmp_path / "deep" / "er"
    assert (made / "labels.txt").read_text() == "mug\nhat\n"
    assert (made / "model.tflite").stat().st_size == said["bytes"]
    assert zipfile.is_zipfile(made / "model.tflite")
    # Existing files, either of them, need --replace.
    for name in ("model.tflite", "labels.txt"):
        shutil.copy(made / name, tmp_path / name)
        line = refused(run_cli, demo, state, "--out", "model.tflite")
        assert f"{name}, which exists" in line
        (tmp_path / name).unlink()
    # --replace replaces an export, not the labels of another one in the same folder.
    line = refused(run_cli, demo, state, "--out", "deep/er/second.tflite", "--replace")
    assert "labels.txt beside model.tflite, whose labels it may have; choose an --out in " in line
    assert (made / "labels.txt").read_text() == "mug\nhat\n"


def test_unknown_mode_and_missing_frames(run_cli: Run, demo: Path, state: Path) -> None:
    out = ("--out", "model.tflite")
    assert "int8" in refused(run_cli, demo, state, *out, "--quantize", "int4")
    assert "--calibrate" in refused(run_cli, demo, state, *out, "--quantize", "int8")
    assert "--quantize" in refused(run_cli, demo, state, *out, "--calibrate", "synthetic")


def test_frames_of_one_colour(run_cli: Run, demo: Path, state: Path, tmp_path: Path) -> None:
    dataset = pictures(tmp_path / "flat", [10, 90, 200])
    words = ("--out", "model.tflite", "--quantize", "int8", "--calibrate", dataset)
    assert "one colour each" in refused_after_notes(run_cli, demo, state, *words)
    assert not list(tmp_path.glob("*.tflite")) + list(tmp_path.glob("labels*"))


def refused_after_notes(run_cli: Run, *words: object) -> str:
    """Like `refused`, but a data set may print lines of its progress before the error."""
    done = run_cli("export", *words)
    assert done.returncode == 1
    return done.stderr.splitlines()[-1]


def test_nothing_learned(run_cli: Run, demo: Path, tmp_path: Path) -> None:
    with Learner.open(demo, tmp_path / "new"):
        pass
    assert "learned nothing yet" in refused(run_cli, demo, "new", "--out", "model.tflite")
    assert not (tmp_path / "model.tflite").exists()


def test_a_state_of_another_bundle(run_cli: Run, demo: Path, state: Path, tmp_path: Path) -> None:
    other = shutil.copytree(demo, tmp_path / "other")
    manifest = json.loads((other / MANIFEST_FILE).read_text())
    digest = change(other / "head.tflite")
    manifest["files"]["head.tflite"].update(digest)
    (other / MANIFEST_FILE).write_text(json.dumps(manifest))
    assert "another bundle" in refused(run_cli, other, state, "--out", "model.tflite")


def change(path: Path) -> dict[str, object]:
    """Append a byte, which no reader of a model minds; return the new digest."""
    from hashlib import sha256

    content = path.read_bytes() + b"\0"
    path.write_bytes(content)
    return {"bytes": len(content), "sha256": sha256(content).hexdigest()}


def test_paths(run_cli: Run, demo: Path, state: Path, tmp_path: Path) -> None:
    assert "check the path" in refused(run_cli, demo, "nowhere", "--out", "model.tflite")
    assert "got the folder" in refused(run_cli, demo, state, "--out", ".")
    assert "labels go" in refused(run_cli, demo, state, "--out", "labels.txt")
    assert "manifest.json" in refused(run_cli, tmp_path, state, "--out", "model.tflite")


def test_without_tensorflow(run_cli: Run, demo: Path, state: Path) -> None:
    done = run_cli("export", demo, state, "--out", "m.tflite", lacking=["tensorflow"])
    assert done.returncode == 1
    assert "[host]" in done.stderr
