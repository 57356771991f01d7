"""`lrtflite diagnose`: what it prints, and bad input in one line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from lrtflite import Learner
from lrtflite.errors import DataError, InputError, StateError
from lrtflite.pictures import KeptPictures
from lrtflite_cli.group import cli
from planted_pictures import THINGS, Pictures, clean_pictures, save
from states import contents

Command = Callable[..., Result]
FORMATS = Path(__file__).parents[1] / "formats"
_, BALL, CUP, _, PHONE, _ = THINGS


@pytest.fixture(scope="module")
def clean() -> Pictures:
    pictures = clean_pictures()
    return {name: pictures[name] for name in (BALL, CUP, PHONE)}


@pytest.fixture
def things(clean: Pictures, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return save(clean, tmp_path / "things")


@pytest.fixture(scope="module")
def taught(clean: Pictures, demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a state that knows a ball and a cup; tests copy it."""
    state = tmp_path_factory.mktemp("taught") / "state"
    with Learner.open(demo, state) as learner:
        for name in (BALL, CUP):
            learner.learn(np.stack(clean[name]), name)
    return state


@pytest.fixture
def lrtflite(demo: Path, things: Path, taught: Path) -> Command:
    """Return a function that runs a command on a state that knows a ball and a cup."""
    shutil.copytree(taught, "state")

    def run(command: str, *words: object, state: str = "state") -> Result:
        return CliRunner().invoke(cli, [command, str(demo), state, *map(str, words)])

    return run


def printed(done: Result) -> list[str]:
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


def test_a_data_set_without_faults(lrtflite: Command) -> None:
    before = contents(Path("state"))
    assert printed(lrtflite("diagnose", "--dataset", "folder:things")) == [
        "looked at 22 pictures of 2 classes",
        "",
        "nothing to improve was found",
        "",
        f"note: pictures of {PHONE} were left out: the state has no such class",
    ]
    assert contents(Path("state")) == before


def test_each_action_is_a_line(lrtflite: Command, things: Path) -> None:
    (things / CUP / "04.png").rename(things / BALL / "90.png")
    (things / CUP / "99.png").write_bytes((things / CUP / "07.png").read_bytes())
    lines = printed(lrtflite("diagnose", "--dataset", "folder:things"))
    assert lines[2:5] == [
        f"remove 1 picture of {BALL} that looks like {CUP}: {BALL}/90.png",
        f"remove 1 picture of {CUP} that repeats another one: {CUP}/99.png (as {CUP}/07.png)",
        "",
    ]


def test_kept_pictures_are_used_without_a_data_set(lrtflite: Command, clean: Pictures) -> None:
    kept = KeptPictures.beside("state")
    for slot, name in enumerate((BALL, CUP)):
        for frame in clean[name]:
            kept.add(slot, frame)
    dark = kept.add(1, clean[CUP][3] // 6)
    lines = printed(lrtflite("diagnose"))
    assert lines[0] == "looked at 23 pictures of 2 classes"
    assert lines[2:] == [f"replace 1 dark picture of {CUP} with one in more light: {dark.id}"]


def test_the_state_alone(lrtflite: Command) -> None:
    assert printed(lrtflite("learn", "--label", PHONE, f"things/{PHONE}/00.png"))
    lines = printed(lrtflite("diagnose"))
    assert lines[0] == "looked at the state alone: 23 stored frames and the history"
    assert lines[2].startswith(f"add pictures of {PHONE}: it has 1, and 12")
    assert lines[-1].startswith("note: without pictures, only classes are judged")


def test_json_has_the_findings(lrtflite: Command) -> None:
    found = json.loads("\n".join(printed(lrtflite("diagnose", "--json"))))
    assert found["actions"] == []
    assert [(each["label"], each["taught"]) for each in found["classes"]] == [
        (BALL, 11),
        (CUP, 11),
    ]


def test_control_characters_of_a_class_stay_text(lrtflite: Command, things: Path) -> None:
    """A file name may have them, and a terminal would obey."""
    (things / CUP / "\x1b[2J.png").write_bytes((things / CUP / "00.png").read_bytes())
    done = lrtflite("diagnose", "--dataset", "folder:things")
    assert "\x1b" not in done.output
    assert any("repeats another one: " in line for line in printed(done))


def refused(done: Result, error: type[Exception], said: str) -> None:
    """The group raises the error, and the command's entry prints it as a line."""
    assert isinstance(done.exception, error)
    assert said in str(done.exception)
    assert "\n" not in str(done.exception)
    assert done.stdout == ""


def test_a_data_set_without_the_classes(lrtflite: Command, things: Path) -> None:
    done = lrtflite("diagnose", "--dataset", f"folder:things?classes={PHONE}")
    refused(done, InputError, f"({BALL}, {CUP}), got only {PHONE}")


def test_an_unreadable_picture(lrtflite: Command, things: Path) -> None:
    (things / CUP / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    done = lrtflite("diagnose", "--dataset", "folder:things")
    refused(done, DataError, f"{CUP}/broken.png")
    lines = printed(lrtflite("diagnose", "--dataset", "folder:things", "--skip-unreadable"))
    assert lines[0] == "looked at 22 pictures of 2 classes"


def test_an_unreadable_kept_picture_is_an_action(lrtflite: Command) -> None:
    added = KeptPictures.beside("state").add(0, b"\xff\xd8\xff no picture")
    lines = printed(lrtflite("diagnose"))
    assert lines[2] == f"remove or replace 1 unreadable picture of {BALL}: {added.id}"


def test_a_state_that_is_not_there(lrtflite: Command) -> None:
    refused(lrtflite("diagnose", state="none"), StateError, "none")


def test_a_state_that_has_learned_nothing(lrtflite: Command, demo: Path) -> None:
    for label in (BALL, CUP):
        assert lrtflite("forget", label).exit_code == 0
    refused(lrtflite("diagnose"), InputError, "a state that has learned something")


def test_a_state_of_another_bundle(lrtflite: Command) -> None:
    shutil.copytree(FORMATS / "state-6", "foreign")
    refused(lrtflite("diagnose", state="foreign"), StateError, "another bundle")
