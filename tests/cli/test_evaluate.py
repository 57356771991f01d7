"""`lrtflite evaluate` and `unknown`, with counts worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from coloured_pictures import draw_pictures
from fake_bundle import FAKES, make_bundle
from lrtflite import Learner, read_image
from lrtflite.data import open_source
from lrtflite.errors import DataError, InputError
from lrtflite.opening import open_committed
from lrtflite_cli.group import cli
from states import contents

Command = Callable[..., Result]


@pytest.fixture
def things(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return draw_pictures(tmp_path / "things", classes=3, images=12)


@pytest.fixture
def lrtflite(demo: Path, things: Path) -> Command:
    """Return a function that runs a command on a state that knows amber and blue."""

    def run(command: str, *words: object) -> Result:
        return CliRunner().invoke(cli, [command, str(demo), "state", *map(str, words)])

    for name in ("amber", "blue"):
        assert run("learn", "--label", name, f"things/{name}").exit_code == 0
    return run


def printed(done: Result) -> str:
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_table_and_the_confusions(lrtflite: Command, things: Path) -> None:
    # A third of 12 is held out. The greens were never taught, and a blue picture is called amber.
    Path("other/amber").mkdir(parents=True)
    for number in range(3):
        source = things / "amber" / f"00{number}.png"
        (Path("other/amber") / f"{number}.png").write_bytes(source.read_bytes())
    (Path("other/amber") / "9.png").write_bytes((things / "blue" / "001.png").read_bytes())
    before = contents(Path("state"))
    done = lrtflite("evaluate", "--dataset", "folder:other", "--all")
    lines = printed(done).splitlines()
    assert lines[:6] == [
        "accuracy 75.0% of 4 frames of 1 learned class",
        "",
        "class  frames  right  recall  taken for",
        "amber       4      3     75%  blue 1",
        "",
        "1 of 4 amber as blue",
    ]
    assert lines[7].startswith("unknown")
    assert done.stderr == "testing frames: 4\n"
    assert contents(Path("state")) == before


def test_classes_that_were_not_learned_stand_for_unknown_things(lrtflite: Command) -> None:
    lines = printed(lrtflite("evaluate", "--dataset", "folder:things")).splitlines()
    # Four of twelve pictures of each of three classes are held out.
    assert lines[0] == (
        "accuracy 100.0% of 8 frames of 2 learned classes; 4 frames of classes that were not "
        "learned"
    )
    assert lines[5].startswith("green (not learned)       4      0      0%  ")
    found = json.loads(printed(lrtflite("evaluate", "--dataset", "folder:things", "--json")))
    assert (found["accuracy"], found["frames"], found["others"]) == (1.0, 8, 4)
    assert [each["label"] for each in found["classes"]] == ["amber", "blue", "green"]
    assert {each["label"] for each in found["confusions"]} == {"green"}
    assert sum(each["frames"] for each in found["confusions"]) == 4
    assert (found["unknown"]["known"], found["unknown"]["unknown"]) == (8, 4)


def test_a_threshold_changes_the_answers(lrtflite: Command) -> None:
    words = ("--dataset", "folder:things", "--json", "--unknown", "1")
    found = json.loads(printed(lrtflite("evaluate", *words)))
    # Everything is refused: wrong for what was learned, right for what was not.
    assert (found["right"], found["classes"][2]["right"]) == (0, 4)
    assert {each["answer"] for each in found["confusions"]} == {"unknown"}


def test_unknown_shows_each_threshold_and_recommends_one(
    lrtflite: Command, demo: Path, things: Path
) -> None:
    words = ("--dataset", "folder:things", "--all", "--most-refused", "1")
    done = lrtflite("unknown", *words)
    lines = printed(done).splitlines()
    with Learner.open(demo, "state", read_only=True) as learner:
        familiarity = {
            name: [
                learner.predict(read_image(path, 128))[0][0].familiarity or 0.0
                for path in sorted((things / name).iterdir())
            ]
            for name in ("amber", "blue", "green")
        }
    known = familiarity["amber"] + familiarity["blue"]
    for line, threshold in zip(lines[1:9], (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)):
        refused = sum(each < threshold for each in known)
        caught = sum(each < threshold for each in familiarity["green"])
        assert line.split()[0] == f"{threshold:g}"
        assert f"{refused} of 24" in line
        assert f"{caught} of 12" in line
    found = json.loads(printed(lrtflite("unknown", *words, "--json")))
    recommended = found["recommended"]
    assert [line.split()[0] for line in lines if " * " in line] == [f"{recommended:g}"]
    assert lines[10].startswith(f"unknown={recommended:g} refuses ")
    assert lines[-1].endswith(f"state --unknown {recommended:g} PICTURE...")


def test_without_unknown_classes_the_catch_is_not_measured(lrtflite: Command) -> None:
    words = ("--dataset", "folder:things?classes=amber,blue", "--most-refused", "0.6")
    lines = printed(lrtflite("unknown", *words)).splitlines()
    assert all(line.endswith("not measured") for line in lines[1:9])
    assert "; what it catches is not measured, as every tested class is learned" in lines[10]
    assert lines[11] == "to measure it, add folders of things that the state was never taught"


def test_the_split_is_that_of_the_other_commands(lrtflite: Command, things: Path) -> None:
    """A picture that only one split holds out is wrong: the seeds decide whether it counts."""
    held_out = [
        {clip.name for clip in open_source("folder:things", seed=seed).test_clips()}
        for seed in (0, 1)
    ]
    wrong = next(iter(name for name in held_out[0] - held_out[1] if name.startswith("amber")))
    (things / wrong).write_bytes((things / "blue" / "001.png").read_bytes())
    for words, right in (
        ([], 7),
        (["--seed", "1"], 8),
        (["--split-seed", "1"], 8),
        (["--seed", "1", "--split-seed", "0"], 7),
    ):
        done = lrtflite("evaluate", "--dataset", "folder:things", "--json", *words)
        assert json.loads(printed(done))["right"] == right


@pytest.mark.parametrize("command", ["evaluate", "unknown"])
def test_bad_input_is_one_line(lrtflite: Command, things: Path, command: str) -> None:
    done = lrtflite(command, "--dataset", "folder:things?classes=green,")
    assert isinstance(done.exception, InputError)
    assert str(done.exception) == (
        "Expected frames of a learned class (amber, blue), got only green; check the labels"
    )
    (things / "blue" / "001.png").write_bytes(b"")
    done = lrtflite(command, "--dataset", "folder:things")
    assert isinstance(done.exception, DataError)
    assert "1 of 36 that cannot be read" in str(done.exception)
    done = lrtflite(command, "--dataset", "folder:things", "--skip-unreadable", "--json")
    assert json.loads(printed(done))["skipped_files"] == ["blue/001.png (empty)"]


def test_a_head_that_does_not_tell_has_no_threshold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    draw_pictures(tmp_path / "things", classes=2, images=3)
    make_bundle(tmp_path / "fake")
    monkeypatch.setattr("lrtflite.learner.open_committed", partial(open_committed, **FAKES))
    words = ["learn", "fake", "state", "--label", "amber", "things/amber"]
    assert CliRunner().invoke(cli, words).exit_code == 0
    done = CliRunner().invoke(cli, ["unknown", "fake", "state", "--dataset", "folder:things"])
    assert isinstance(done.exception, InputError)
    assert "whose head reports familiarity, got fake; convert one with" in str(done.exception)
    done = CliRunner().invoke(cli, ["evaluate", "fake", "state", "--dataset", "folder:things"])
    assert "unknown" not in printed(done)
