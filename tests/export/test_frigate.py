"""`export --layout frigate`: the files that Frigate opens, used as its code uses them."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lrtflite import Learner, fit_frame
from lrtflite.runtime.flatbuffer import custom_ops
from lrtflite.runtime.model import RUNTIMES

LABELS = ("red-mug", "none", "0 hat")
# Side of the frames that Frigate feeds, whatever the model takes.
SIDE = 224


def pictures(kind: int, count: int, *, seed: int) -> np.ndarray:
    """Return pictures of one class as Frigate crops them: (count, 224, 224, 3) uint8."""
    rng = np.random.default_rng((seed, kind))
    found = rng.integers(0, 90, (count, SIDE, SIDE, 3))
    colour = np.random.default_rng(50 + kind).integers(0, 256, 3)
    for picture in found:
        top, left = rng.integers(0, SIDE // 2, 2)
        picture[top : top + SIDE // 2, left : left + SIDE // 2] = colour
    return found.astype(np.uint8)


def export(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lrtflite_cli.main", "export"]
    return subprocess.run([*command, *words], check=check, capture_output=True, text=True)


@pytest.fixture(scope="module")
def state(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("states") / "state"
    with Learner.open(demo, path) as learner:
        for kind, label in enumerate(LABELS):
            size = learner.bundle.manifest.input_size
            frames = [fit_frame(each, size) for each in pictures(kind, 12, seed=0)]
            learner.learn(frames, label)
    return path


@pytest.fixture(scope="module")
def folder(demo: Path, state: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("frigate") / "kitchen"
    export(str(demo), str(state), "--layout", "frigate", "--out", str(out))
    return out


@pytest.fixture(scope="module")
def int8(demo: Path, state: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return an int8 model in the plain layout, and the same in Frigate's."""
    above = tmp_path_factory.mktemp("int8")
    words = [str(demo), str(state), "--quantize", "int8", "--calibrate", "synthetic?classes=5"]
    export(*words, "--out", str(above / "plain.tflite"))
    export(*words, "--layout", "frigate", "--out", str(above / "kitchen"))
    return above / "plain.tflite", above / "kitchen"


def frigate_labels(path: Path) -> dict[int, str]:
    """Read the labels as Frigate does for these models: one a line, spaces around it removed."""
    return {number: line.strip() for number, line in enumerate(path.read_text().splitlines())}


def scores(runtime: str, model: Path, picture: np.ndarray, *, side: int = SIDE) -> np.ndarray:
    """Run a model as Frigate does, and return its output."""
    module: Any = pytest.importorskip(RUNTIMES[runtime][1])
    interpreter = module.Interpreter(model_path=str(model), num_threads=2)
    interpreter.allocate_tensors()
    (into,), (out,) = interpreter.get_input_details(), interpreter.get_output_details()
    assert into["dtype"] is np.uint8
    assert into["shape"].tolist() == [1, side, side, 3]
    interpreter.set_tensor(into["index"], picture[np.newaxis])
    interpreter.invoke()
    return np.asarray(interpreter.get_tensor(out["index"])[0])


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_frigates_steps_give_the_learners_answers(
    runtime: str, folder: Path, demo: Path, state: Path
) -> None:
    labels = frigate_labels(folder / "labelmap.txt")
    assert labels == dict(enumerate(LABELS))
    with Learner.open(demo, state, read_only=True) as learner:
        for kind in range(len(LABELS)):
            for picture in pictures(kind, 3, seed=1):
                found = scores(runtime, folder / "model.tflite", picture)
                shares = found / found.sum(axis=0)
                frame = fit_frame(picture, learner.bundle.manifest.input_size)
                expected = {g.label: g.probability for g in learner.predict(frame, top=3)[0]}
                assert labels[int(np.argmax(shares))] == max(expected, key=expected.__getitem__)
                np.testing.assert_allclose(shares, [expected[x] for x in LABELS], atol=1e-4)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_an_int8_model_is_that_of_the_plain_layout(runtime: str, int8: tuple[Path, Path]) -> None:
    plain, folder = int8
    for kind in range(len(LABELS)):
        for picture in pictures(kind, 3, seed=1):
            expected = scores(runtime, plain, fit_frame(picture, 128), side=128)
            found = scores(runtime, folder / "model.tflite", picture)
            assert found.dtype == np.uint8
            np.testing.assert_array_equal(found, expected)


def test_files_and_facts(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == ["labelmap.txt", "model.tflite"]
    assert not custom_ops(folder / "model.tflite")
    with zipfile.ZipFile(folder / "model.tflite") as archive:
        facts = json.loads(archive.read("lrtflite.json"))
        assert archive.read("labels.txt").decode().splitlines() == list(LABELS)
    assert (facts["input_size"], facts["resized_to"]) == (SIDE, 128)


def test_what_is_printed(demo: Path, state: Path, tmp_path: Path) -> None:
    out = tmp_path / "kitchen"
    words = [str(demo), str(state), "--layout", "frigate", "--out", str(out)]
    done = export(*words)
    assert f"Copy {out} to /config/model_cache of Frigate" in done.stderr
    assert "no class 'none'" not in done.stderr
    assert "labelmap.txt: red-mug, none, 0 hat" in done.stdout
    again = export(*words, check=False)
    assert again.returncode == 1
    assert "got " + str(out / "model.tflite") + ", which exists" in again.stderr
    with Learner.open(demo, state) as learner:
        learner.rename("none", "other")
    assert "teach pictures of other things as 'none'" in export(*words, "--replace").stderr


def test_layouts_that_do_not_fit(demo: Path, state: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for words, expected in (
        (["--layout", "frigat", "--out", "x"], "Expected a layout of plain, frigate, got 'frigat'"),
        (["--layout", "frigate", "--out", str(tmp_path / "file")], "Expected a folder for the"),
    ):
        done = export(str(demo), str(state), *words, check=False)
        assert done.returncode == 1
        assert expected in done.stderr
        assert len(done.stderr.splitlines()) == 1
