"""`--rate NAME=VALUE` on every command that sets how a session trains."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coloured_pictures import draw_pictures
from lrtflite.bundle.bundle import Bundle
from lrtflite_cli.options.rates import SHORT_FORMS

Run = Callable[..., Any]
ErrorOf = Callable[..., str]
COMMANDS = ("convert", "simulate", "teach")
SHORT = ("--first-classes", "2", "--sessions", "2", "--replay-size", "10", "--json", "-")


@pytest.fixture
def things(tmp_path: Path) -> Path:
    return draw_pictures(tmp_path / "things", classes=3, images=6)


@pytest.fixture(params=COMMANDS)
def words(request: pytest.FixtureRequest, demo: Path, things: Path) -> list[object]:
    """Return one of the three commands with all that it needs except its rates."""
    dataset = ["--dataset", f"folder:{things}"]
    needed: dict[str, list[object]] = {
        "convert": [],
        "simulate": [demo, *dataset],
        "teach": [demo, *dataset, "--out", "taught"],
    }
    return [request.param, *needed[request.param]]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["leanring_rate=1"], "Expected a rate of "),
        (["momentun=0.5"], "got 'momentun'; did you mean 'momentum'?"),
        (["lr=fast"], "Expected --rate as NAME=VALUE, such as lr=0.01, got 'lr=fast'"),
        (["lr"], "Expected --rate as NAME=VALUE, such as lr=0.01, got 'lr'"),
        (["=3"], "Expected --rate as NAME=VALUE, such as lr=0.01, got '=3'"),
        (["momentum=1.5"], "momentum as a number from 0 to 1, got 1.5"),
        (["lr=-1"], "lr as a number of at least 0, got -1"),
        (["lr=nan"], "lr as a number of at least 0, got nan"),
        (["epochs=0"], "epochs as a whole number from 1 to 100,000, got 0"),
        (["epochs=2.5"], "epochs as a whole number from 1 to 100,000, got 2.5"),
        (["lr=0.1", "lr=0.2"], "Expected lr once, got it twice; leave one out"),
    ],
)
def test_a_wrong_rate_is_one_line(
    words: list[object], error_of: ErrorOf, tmp_path: Path, given: list[str], said: str
) -> None:
    options = [word for rate in given for word in ("--rate", rate)]
    assert said in error_of(*words, *options)
    assert [path.name for path in tmp_path.iterdir()] == ["things"]


def test_a_rate_and_its_short_form_are_the_same_rate(
    words: list[object], error_of: ErrorOf
) -> None:
    for name in SHORT_FORMS:
        error = error_of(*words, f"--{name}", "1", "--rate", f"{name}=1")
        assert f"Expected {name} once, got it twice; leave one out" in error


def test_a_rate_of_the_trunk_names_the_rates_there_are(
    words: list[object], error_of: ErrorOf, demo: Path
) -> None:
    names = Bundle.open(demo).manifest.training.names
    error = error_of(*words, "--rate", "trunk_lr=0.1")
    assert "got 'trunk_lr'" in error
    listed = error.partition("Expected a rate of ")[2].partition(", got")[0]
    assert sorted(listed.split(", ")) == sorted(names)
    assert {"lr", "epochs"} <= set(names)
    assert "trunk_lr" not in names


def test_simulate_takes_several(run_cli: Run, things: Path) -> None:
    rates = ["--rate", "lr=0.05", "--rate", "epochs=30", "--rate", "momentum=5e-1"]
    done = run_cli("simulate", "--dataset", f"folder:{things}", *SHORT, *rates)
    assert done.returncode == 0, done.stderr
    given = {"lr": 0.05, "epochs": 30, "momentum": 0.5}
    found = json.loads(done.stdout)
    assert found["training"].items() >= given.items()
    assert [session["steps"] for session in found["accuracy"]] == [30, 30]


def test_both_spellings_give_the_same_run(run_cli: Run, things: Path) -> None:
    words = ("simulate", "--dataset", f"folder:{things}", *SHORT)
    short = run_cli(*words, "--lr", "0.05", "--epochs", "30")
    long = run_cli(*words, "--rate", "lr=0.05", "--rate", "epochs=30")
    learned = [
        (found["training"], [session["loss"] for session in found["accuracy"]])
        for found in (json.loads(done.stdout) for done in (short, long))
    ]
    assert learned[0] == learned[1]


def test_teach_takes_several(run_cli: Run, demo: Path, things: Path) -> None:
    words = ("teach", demo, "--dataset", f"folder:{things}", "--json")
    found = {}
    for out, rates in {
        "short": ["--lr", "0.05", "--epochs", "40"],
        "long": ["--rate", "lr=0.05", "--rate", "epochs=40"],
        "other": ["--rate", "lr=0.05", "--rate", "epochs=40", "--rate", "momentum=0"],
    }.items():
        done = run_cli(*words, "--out", out, *rates)
        assert done.returncode == 0, done.stderr
        found[out] = json.loads(done.stdout)
    assert found["short"]["steps"] == 40
    assert found["long"]["loss"] == found["short"]["loss"] != found["other"]["loss"]
