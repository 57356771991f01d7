"""`lrtflite learn`, `predict`, `rename`, `forget` and `undo`, one after the other on a state."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from coloured_pictures import draw_pictures
from lrtflite import Learner
from lrtflite.errors import DataError, InputError, LrtfliteError, StateError
from lrtflite_cli.group import cli
from states import contents

pytestmark = pytest.mark.slow

Run = Callable[..., Any]
FORMATS = Path(__file__).parent.parent / "formats"


@pytest.fixture
def things(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return draw_pictures(tmp_path / "things", classes=3, images=8)


@pytest.fixture
def lrtflite(demo: Path) -> Callable[..., Result]:
    """Return a function that runs a command of the demo bundle in this process."""

    def run(command: str, *words: object) -> Result:
        return CliRunner().invoke(cli, [command, str(demo), *map(str, words)])

    return run


Command = Callable[..., Result]


def printed(done: Result) -> str:
    assert done.exit_code == 0, done.output
    return done.stdout


def error(done: Result, kind: type[LrtfliteError]) -> str:
    assert isinstance(done.exception, kind), done.exception
    [line] = str(done.exception).splitlines()
    return line


def teach_two(lrtflite: Command) -> None:
    for name in ("amber", "blue"):
        printed(lrtflite("learn", "state", "--label", name, f"things/{name}"))


def test_a_class_is_taught_named_renamed_forgotten_and_brought_back(
    lrtflite: Command, things: Path
) -> None:
    first = lrtflite("learn", "state", "--label", "amber", "things/amber")
    assert "state is a new state\n" in first.stderr
    assert printed(first).startswith("learned amber, a new class, from 8 pictures in ")
    assert first.stdout.endswith(" ms; knows 1 class: amber\n")
    second = lrtflite("learn", "state", "--label", "blue", "things/blue", "things/blue/000.png")
    assert "new state" not in second.stderr
    # The file that is also in the folder counts once.
    assert "from 8 pictures in " in printed(second)
    again = printed(lrtflite("learn", "state", "--label", "amber", "things/amber/001.png"))
    assert again.startswith("learned amber, again, from 1 picture in ")
    named = printed(
        lrtflite("predict", "state", "things/blue/003.png", "things/amber")
    ).splitlines()
    assert len(named) == 9
    assert named[0].startswith("things/blue/003.png: blue ")
    assert all(line.split(": ")[1].startswith("amber ") for line in named[1:])
    assert printed(lrtflite("rename", "state", "blue", "navy")) == (
        "renamed blue to navy; knows 2 classes: amber, navy\n"
    )
    assert printed(lrtflite("forget", "state", "navy")) == "forgot navy; knows 1 class: amber\n"
    assert printed(lrtflite("undo", "state")) == (
        "undid a rename or a forget, navy is back; knows 2 classes: amber, navy\n"
    )
    assert "Nothing to undo" in error(lrtflite("undo", "state"), StateError)


def test_undo_takes_a_session_back(lrtflite: Command, things: Path) -> None:
    teach_two(lrtflite)
    assert printed(lrtflite("undo", "state")) == (
        "undid session 2, blue is gone; knows 1 class: amber\n"
    )


def test_json(lrtflite: Command, things: Path) -> None:
    teach_two(lrtflite)
    (things / "green" / "002.png").write_bytes(b"")
    words = ("--label", "green", "things/green", "--skip-unreadable", "--json")
    learned = json.loads(printed(lrtflite("learn", "state", *words)))
    assert learned["skipped_files"] == ["things/green/002.png (not an image)"]
    assert learned["session_ms"] > 0
    picked = ("label", "new", "pictures", "session", "replay_patterns", "classes")
    assert [learned[name] for name in picked] == [
        *("green", True, 7, 3, 23),
        ["amber", "blue", "green"],
    ]
    [named] = json.loads(
        printed(lrtflite("predict", "state", "things/blue/001.png", "--json", "--top", 1))
    )
    [answer] = named["answers"]
    assert (named["picture"], answer["label"]) == ("things/blue/001.png", "blue")
    assert 0 < answer["probability"] <= 1
    assert 0 <= answer["familiarity"] <= 1
    assert json.loads(printed(lrtflite("rename", "state", "blue", "navy", "--json"))) == {
        "renamed": "blue",
        "new": "navy",
        "classes": ["amber", "navy", "green"],
    }
    assert json.loads(printed(lrtflite("undo", "state", "--json"))) == {
        "undid_session": None,
        "gone": ["navy"],
        "back": ["blue"],
        "sessions": 3,
        "classes": ["amber", "blue", "green"],
    }
    assert json.loads(printed(lrtflite("forget", "state", "amber", "--json"))) == {
        "forgot": "amber",
        "classes": ["blue", "green"],
    }


def test_a_label_that_looks_misspelt_says_how_to_take_it_back(
    lrtflite: Command, things: Path
) -> None:
    teach_two(lrtflite)
    done = lrtflite("learn", "state", "--label", "Ambr", "things/amber")
    assert "'Ambr' is a new class, similar to 'amber'; to take it back, run: " in done.stderr
    assert done.stderr.rstrip().endswith(" state")
    assert "slip" not in lrtflite("learn", "state", "--label", "green", "things/green").stderr


def test_an_unfamiliar_picture_is_unknown(lrtflite: Command, things: Path) -> None:
    teach_two(lrtflite)
    # Every picture is less familiar than all of those that were taught.
    said = printed(lrtflite("predict", "state", "things/green/001.png", "--unknown", "1"))
    assert said.startswith("things/green/001.png: unknown (familiarity 0.")
    assert "; looks most like " in said
    refused = lrtflite("predict", "state", "things/green", "--unknown", "1.5")
    assert refused.exit_code == 2


def test_pictures_that_cannot_be_read_do_not_hide_the_others(
    run_cli: Run, demo: Path, lrtflite: Command, things: Path
) -> None:
    teach_two(lrtflite)
    (things / "blue" / "002.png").write_bytes(b"")
    done = run_cli("predict", demo, "state", "things/blue", "gone.jpg")
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == 7
    assert done.stderr.splitlines() == [
        "Error: Expected readable pictures, got 2 of 9 that cannot be read: things/blue/002.png "
        "(not an image), gone.jpg (No such file or directory); replace or remove them"
    ]
    done = run_cli("predict", demo, "state", "things/blue", "gone.jpg", "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert [each["picture"] for each in found if "error" in each] == [
        "things/blue/002.png",
        "gone.jpg",
    ]
    assert sum("answers" in each for each in found) == 7


def test_learning_from_unreadable_pictures_changes_nothing(lrtflite: Command, things: Path) -> None:
    (things / "blue" / "002.png").write_bytes(b"")
    said = error(lrtflite("learn", "state", "--label", "blue", "things/blue"), DataError)
    assert "got 1 of 8 that cannot be read: things/blue/002.png (not an image); " in said
    assert said.endswith("or add --skip-unreadable")
    assert not (things.parent / "state").exists()
    done = lrtflite("learn", "state", "--label", "blue", "things/blue", "--skip-unreadable")
    assert "from 7 pictures" in printed(done)
    assert "left out: things/blue/002.png (not an image)" in done.stderr
    only = ("--label", "blue", "things/blue/002.png", "--skip-unreadable")
    assert "1 of 1" in error(lrtflite("learn", "state", *only), DataError)


@pytest.mark.parametrize(
    ("words", "kind", "said"),
    [
        (["forget", "state", "ambr"], InputError, r"a known label (amber, blue), got 'ambr'"),
        (["rename", "state", "amber", "blue"], InputError, "is not taken, got 'blue'"),
        (["rename", "state", "amber", "a\nb"], InputError, "a label of one line of text"),
        (["learn", "state", "--label", " ", "things/blue"], InputError, "a label of one line"),
        (["predict", "stat", "things/blue"], StateError, "got stat, which does not exist; check"),
        (["undo", "stat"], StateError, "got stat, which does not exist; check the path"),
        (["forget", "stat", "amber"], StateError, "got stat, which does not exist; check the"),
        (["rename", "things", "amber", "x"], StateError, "with no state-*.safetensors in it"),
        (["learn", "things", "--label", "x", "things/blue"], StateError, "or a new or empty one"),
        (["predict", "state", "things"], DataError, "got the folder amber; convert it or move"),
    ],
)
def test_bad_input_is_one_line_and_changes_nothing(
    lrtflite: Command, things: Path, words: list[str], kind: type[LrtfliteError], said: str
) -> None:
    teach_two(lrtflite)
    before = contents(things.parent / "state")
    assert said in error(lrtflite(*words), kind)
    assert contents(things.parent / "state") == before
    assert sorted(os.listdir(things.parent)) == ["state", "things"]


def test_a_state_without_classes_is_not_asked(lrtflite: Command, demo: Path, things: Path) -> None:
    Learner.open(demo, "state").close()
    said = error(lrtflite("predict", "state", "things/blue"), InputError)
    assert said == (
        "Expected a state that has learned something, got state, which has not; teach it with "
        "`lrtflite learn`"
    )


def test_a_state_in_use_answers_but_does_not_learn(
    error_of: Callable[..., str], lrtflite: Command, demo: Path, things: Path
) -> None:
    teach_two(lrtflite)
    with Learner.open(demo, "state"):
        for words in (["undo"], ["forget", "amber"], ["rename", "amber", "x"]):
            name, *rest = words
            assert "state is in use by another learner" in error_of(name, demo, "state", *rest)
        assert "amber " in printed(lrtflite("predict", "state", "things/amber/001.png"))


def test_the_state_of_another_bundle(lrtflite: Command, things: Path) -> None:
    teach_two(lrtflite)
    words = ["predict", FORMATS / "bundle-7", "state", "things/blue"]
    done = CliRunner().invoke(cli, list(map(str, words)))
    assert "got one for another bundle" in error(done, StateError)


def test_a_damaged_generation_is_said(lrtflite: Command, things: Path) -> None:
    """The learner logs it while the runtimes are silenced."""
    teach_two(lrtflite)
    newest = max((things.parent / "state").glob("state-*.safetensors"))
    newest.write_bytes(newest.read_bytes()[:-1])
    done = lrtflite("predict", "state", "things/amber/001.png")
    assert "amber " in printed(done)
    assert f"Warning: The state state/{newest.name} is damaged" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_interrupted_learning_leaves_the_state_as_it_was(
    lrtflite: Command, demo: Path, things: Path
) -> None:
    teach_two(lrtflite)
    # Enough pictures that the signal finds the session running.
    many = things / "many"
    many.mkdir()
    for number in range(4000):
        os.link(things / "blue" / "001.png", many / f"{number}.png")
    shutil.copytree("state", "before")
    words = ["learn", str(demo), "state", "--label", "many", "things/many"]
    with subprocess.Popen(
        [sys.executable, "-m", "lrtflite_cli.main", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        while not process.stderr.readline().startswith("extracting frames"):
            assert process.poll() is None
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err == "Error: Interrupted; nothing is left half-written\n"
    assert contents(Path("state")) == contents(Path("before"))
