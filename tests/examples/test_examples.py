"""Each example runs in a process of its own, at a small size."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lrtflite import Learner, fit_frame
from lrtflite.bundle.bundle import Bundle
from lrtflite.contract.signatures import SIGNATURES
from lrtflite.state.folder import read_state
from striped_pictures import picture

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "examples"
Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run an example in the test's temporary folder; return its output, or its errors."""

    def example(name: str, *args: object, fails: bool = False) -> str:
        done = subprocess.run(
            [sys.executable, str(EXAMPLES / name), *map(str, args)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == fails, done.stderr
        return done.stderr if fails else done.stdout

    return example


def test_all_of_them_are_tested_and_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    names = {path.name for path in EXAMPLES.iterdir() if path.is_file()}
    here = {"teach_from_folder.py", "own_model.py", "compare_states.py", "kotlin.md", "cpp.md"}
    # These have tests of their own.
    camera, robots = {"camera_loop.py", "camera_console.py"}, {"ros2_node.py", "ros2_image.py"}
    assert names == here | camera | robots
    for name in names:
        assert f"(examples/{name})" in readme


@pytest.mark.skipif(find_spec("tensorflow") is None, reason="needs the extra `host`")
def test_own_model(tmp_path: Path, run: Run) -> None:
    """The bundle of a user's own network learns classes that it was not trained on."""
    for kind, name in enumerate(("bricks", "tiles")):
        folder = tmp_path / "things" / name
        folder.mkdir(parents=True)
        for k in range(4):
            Image.fromarray(picture(kind, k)).save(folder / f"{k}.png")
    said = run("own_model.py", "things", "--epochs", "2")
    assert said == "bundle: features below conv3 trained on bricks, tiles\n"
    learner = Learner.open(tmp_path / "bundle", tmp_path / "state")
    for kind, name in enumerate(("planks", "stones")):
        frames = [fit_frame(np.flip(picture(kind, k), axis=2), 64) for k in range(8)]
        learner.learn(np.stack(frames), name)
    answers = [
        learner.predict(fit_frame(np.flip(picture(kind, 9), axis=2), 64)[np.newaxis])[0][0].label
        for kind in (0, 1)
    ]
    assert answers == ["planks", "stones"]


def test_teach_from_folder(demo: Path, tmp_path: Path, run: Run) -> None:
    for kind, name in enumerate(("bricks", "tiles")):
        folder = tmp_path / f"day {kind}" / name
        folder.mkdir(parents=True)
        for k in range(8):
            Image.fromarray(picture(kind, k)).save(folder / f"{k}.jpg")
        (folder / "notes.txt").write_text("not a picture")
        # A phone stores a picture on its side, with a rotation in EXIF.
        exif = Image.Exif()
        exif[0x0112] = 6
        Image.fromarray(np.rot90(picture(kind, 99))).save(tmp_path / f"new-{kind}.jpg", exif=exif)

    first = run("teach_from_folder.py", demo, "day 0", "--state", "state")
    assert re.fullmatch(r"learned bricks from 8 pictures in \d+ ms, 8 in memory\n", first)
    args = ("--state", "state", "--predict", "new-0.jpg", "new-1.jpg")
    lines = run("teach_from_folder.py", demo, "day 1", *args).splitlines()
    assert re.fullmatch(r"learned tiles from 8 pictures in \d+ ms, 16 in memory", lines[0])
    assert re.fullmatch(r"new-0.jpg: bricks \d+%, tiles \d+%", lines[1])
    assert re.fullmatch(r"new-1.jpg: tiles \d+%, bricks \d+%", lines[2])

    state = read_state(tmp_path / "state")
    assert [label for label in state.meta.labels if label] == ["bricks", "tiles"]
    assert state.meta.sessions == 2

    asked = run("teach_from_folder.py", demo, *args).splitlines()
    assert asked == lines[1:], "asking teaches nothing"
    again = run("teach_from_folder.py", demo, "day 1", "--state", "state")
    assert again.startswith("learned tiles again from 8 pictures")


def test_errors_of_teach_from_folder(demo: Path, tmp_path: Path, run: Run) -> None:
    def error(things: str) -> str:
        return run("teach_from_folder.py", demo, things, "--state", "state", fails=True)

    assert "got nowhere, which is not a folder; check" in error("nowhere")
    mug = tmp_path / "things" / "mug"
    mug.mkdir(parents=True)
    assert f"got none in {mug.relative_to(tmp_path)}" in error("things")
    broken = mug / "broken.jpg"
    broken.write_bytes(b"not a picture")
    assert "got no folder in" in error("things/mug")
    assert "broken.jpg" in error("things")
    assert "Traceback" not in error("things")
    # Not even the class before it is learned.
    (tmp_path / "things" / "bowl").mkdir()
    Image.fromarray(picture(0, 0)).save(tmp_path / "things" / "bowl" / "1.png")
    assert "broken.jpg" in error("things")
    assert not (tmp_path / "state").exists()
    asking = ("--state", "state", "--predict", "things/bowl/1.png")
    said = run("teach_from_folder.py", demo, *asking, fails=True)
    assert "got state without any; teach it first" in said


def test_compare_states(demo: Path, tmp_path: Path, run: Run) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for state, lessons in ((old, ["mug", "hat"]), (new, ["mug", "hat", "pen", "mug"])):
        with Learner.open(demo, state, seed=1) as learner:
            shape = learner.bundle.manifest.latent_shape
            for number, lesson in enumerate(lessons):
                latents = np.random.default_rng(number).random((9, *shape), np.float32)
                learner.learn_latents(latents, lesson)
            if state == new:
                learner.rename("hat", "cap")
    lines = run("compare_states.py", "old", "new").splitlines()
    assert lines[0].startswith("old: 2 sessions, 2 labels, 18 latents in memory, bundle ")
    assert lines[1].startswith("new: 4 sessions, 3 labels, 36 latents in memory, bundle ")
    assert lines[2].split() == ["label", "memory", "moved"]

    # For each class the head keeps weights, a sum and two counts, compared as one vector.
    def rows(folder: Path) -> np.ndarray:
        arrays = read_state(folder).arrays
        kept = [arrays[f"head/{name}"] for name in ("cw", "past", "class_sums", "class_counts")]
        return np.concatenate([values.reshape(50, -1) for values in kept], axis=1)

    before, after = rows(old), rows(new)
    moved = np.sqrt(((after - before) ** 2).sum(1)) / np.sqrt((before**2).sum(1) + 1e-30)
    assert re.split(r"  +", lines[3]) == ["mug", "9 -> 18", f"{moved[0]:.1%}"]
    assert re.split(r"  +", lines[4]) == ["hat -> cap", "9 -> 9", f"{moved[1]:.1%}"]
    assert re.split(r"  +", lines[5]) == ["pen", "0 -> 9", "new"]
    assert len(lines) == 6

    (tmp_path / "none").mkdir()
    assert "got none, which is empty" in run("compare_states.py", "old", "none", fails=True)


@pytest.mark.parametrize(
    ("name", "call", "tensor"),
    [
        (
            "kotlin.md",
            r'(?:run\((?:features|head), |feed\(|else )"(\w+)"',
            r'(?:mapOf\(|, )"(\w+)" to',
        ),
        (
            "cpp.md",
            r'(?:features_\[|head_\[|rated\(|feed\(|: )"(\w+)"',
            r'\.(?:in|out)\("(\w+)"',
        ),
    ],
    ids=["kotlin", "cpp"],
)
def test_other_languages_keep_the_contract(name: str, call: str, tensor: str) -> None:
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    known = {spec.name: spec for spec in SIGNATURES}
    called = set(re.findall(call, text))
    assert called <= set(known)
    always = {spec.name for spec in SIGNATURES if not spec.optional}
    assert always | {"train", "gather"} <= called
    assert "train_last" in text
    used = set(re.findall(tensor, text))
    inputs = {each for spec in known.values() for each in spec.inputs}
    outputs = {each for spec in known.values() for each in (*spec.outputs, *spec.optional_outputs)}
    assert used <= inputs | outputs
    assert inputs | {"familiarity"} <= used
    # The example has no name of a tensor or rate of any head.
    rates = set(Bundle.open(ROOT / "lrtflite" / "demo_bundle").manifest.rates)
    assert not {word for word in re.findall(r"\w+", text) if word in rates | {"cw", "past", "tw"}}


def test_kotlin_copies_what_the_manifest_lists_and_checks_it() -> None:
    """No Kotlin compiler is here, so look for a list of files that could miss one."""
    text = (EXAMPLES / "kotlin.md").read_text(encoding="utf-8")

    def function(name: str) -> str:
        [body] = re.findall(rf"^fun {name}\(.*?^}}$", text, re.M | re.S)
        return str(body)

    assert set(re.findall(r"[\w-]+\.\w+\"", function("copyBundle"))) == {'manifest.json"'}
    assert "for (name in listedFiles(manifest).keys) copy(name)" in function("copyBundle")
    assert 'getJSONObject("files")' in function("listedFiles")
    assert ".isFile" in function("checkFiles")
    learner = text[text.index("class Learner(") :]
    assert learner.index("checkFiles(bundle, it)") < learner.index("Interpreter(File(")
