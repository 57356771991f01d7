"""Every command that opens a Keras file or weights, on files of a stranger: nothing runs.

The commands run in one other process. They must print one line, create no marker, read no other
file, and take no more RAM than a small network.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tf_keras
from PIL import Image

from hostile_files import executing, make_bombs, make_executing, make_pointing
from lrtflite.errors import ModelError
from lrtflite.host.weight_files import read_weights

# Files whose configuration is hostile and whose arrays are the right ones: `--weights` takes those.
WITH_WEIGHTS = ("smuggle", "popen", "system", "wrapped", "vocabulary", "said")
# Megabytes by which the process may grow: TensorFlow builds a small network or two.
MAX_GROWTH = 500
# Runs each command line of a JSON list, and prints what came of it.
CHILD = """
import json, os, pathlib, resource, sys, tempfile
import lrtflite.host
from lrtflite_cli.group import run

marker, commands = pathlib.Path(sys.argv[1]), json.loads(sys.stdin.read())
before, found = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, []
for words in commands:
    with tempfile.TemporaryFile() as said:
        kept = os.dup(2)
        os.dup2(said.fileno(), 2)
        try:
            code = run(words)
        except BaseException as error:
            code = repr(error)
        os.dup2(kept, 2)
        said.seek(0)
        text = said.read().decode(errors="replace")
    found.append([words, code, text, marker.exists()])
    marker.unlink(missing_ok=True)
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(json.dumps([found, grown // 1024]))
"""


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pictures")
    for name, colour in (("cup", (200, 30, 30)), ("pen", (30, 30, 200))):
        (root / name).mkdir()
        for number in range(4):
            Image.new("RGB", (32, 32), colour).save(root / name / f"{number}.png")
    return root


def commands(path: Path, pictures: Path, out: Path) -> list[list[str]]:
    """Return every command line that opens a file of this kind."""
    name, out = str(path), out / path.name
    train = ["train", "--dataset", f"folder:{pictures}", "--input-size", "32", "--out"]
    found = [["convert", "--weights", name, "--out", str(out)]]
    if path.name.startswith(WITH_WEIGHTS):
        found.clear()
    elif path.suffix == ".npz":
        trained = out.with_suffix(".keras")
        trained.with_name(f"{trained.name}.checkpoint.npz").write_bytes(path.read_bytes())
        return [*found, [*train, str(trained), "--weights", "none", "--resume"]]
    else:
        found.append([*train, f"{out}.keras", "--weights", name])
    return [
        *found,
        ["convert", "--model", name, "--out", str(out)],
        ["layers", "--model", name],
    ]


def attack(
    files: list[Path], pictures: Path, out: Path, marker: Path
) -> tuple[list[tuple[list[str], Any, str, bool]], int]:
    lines = [line for path in files for line in commands(path, pictures, out)]
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(marker)],
        input=json.dumps(lines),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found, grown = json.loads(done.stdout.splitlines()[-1])
    return [tuple(each) for each in found], grown


def check(found: list[tuple[list[str], Any, str, bool]]) -> None:
    for words, code, said, ran in found:
        assert not ran, words
        assert code == 1, (words, code, said)
        *stages, error = said.splitlines()
        assert error.startswith("Error: "), (words, said)
        assert error.isprintable(), (words, said)
        assert len(error) < 700, (words, said)
        # What the command was doing, without a word of a library.
        assert set(stages) <= {"reading the weights"}, (words, said)


@pytest.mark.filterwarnings("ignore:You are saving your model as an HDF5 file")
def test_no_command_runs_code_from_a_file(tmp_path: Path, pictures: Path) -> None:
    folder, out, marker = tmp_path / "files", tmp_path / "out", tmp_path / "marker"
    folder.mkdir()
    out.mkdir()
    (folder / "secret").write_text("a line of a secret file")
    files = [path for path in make_executing(folder, marker) if path.name != "secret"]
    assert len(files) == 22
    found, grown = attack(files, pictures, out, marker)
    check(found)
    assert grown < MAX_GROWTH
    for path in files:
        if path.name.startswith(WITH_WEIGHTS):
            with contextlib.suppress(ModelError):
                read_weights(path)
    assert not marker.exists()
    # The attack is real: Keras's own loader runs it.
    tf_keras.models.load_model(folder / "lambda.h5", compile=False)
    assert marker.exists()


@pytest.mark.filterwarnings("ignore:You are saving your model as an HDF5 file")
def test_no_command_follows_a_file_elsewhere_or_unpacks_without_limit(
    tmp_path: Path, pictures: Path
) -> None:
    pointing, bombs, out = (tmp_path / name for name in ("pointing", "bombs", "out"))
    for folder in (pointing, bombs, out):
        folder.mkdir()
    files = [*make_pointing(pointing, tmp_path / "secret.h5"), *make_bombs(bombs)]
    assert all(path.stat().st_size < 5 << 20 for path in files)
    found, grown = attack(files, pictures, out, tmp_path / "marker")
    check(found)
    assert grown < MAX_GROWTH
    assert not any("root:" in said for _, _, said, _ in found)


def test_the_layer_of_the_attacks_runs_its_code(tmp_path: Path) -> None:
    executing(tf_keras, tmp_path / "marker")(np.zeros(1))
    assert (tmp_path / "marker").exists()
