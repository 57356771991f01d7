"""`lrtflite merge`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fleet_learning import teach
from lrtflite import Learner

Run = Callable[..., Any]


@pytest.fixture
def fleet(lda: Path, tmp_path: Path) -> Path:
    """The states `a` and `b`, in the folder in which commands run."""
    teach(lda, tmp_path / "a", ("mug", 0, 1), ("pan", 1, 1))
    teach(lda, tmp_path / "b", ("pen", 2, 2), ("mug", 0, 2))
    return tmp_path


def test_it_says_what_it_merged(run_cli: Run, lda: Path, fleet: Path) -> None:
    done = run_cli("merge", lda, "a", "b", "--out", "fleet")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "fleet: 2 devices, 4 sessions, 3 classes, 80 patterns",
        "  a: 2 sessions, 2 classes, 40 patterns",
        "  b: 2 sessions, 2 classes, 40 patterns",
        "mug      40 patterns",
        "pan      20 patterns",
        "pen      20 patterns",
    ]
    with Learner.open(lda, fleet / "fleet") as learner:
        assert learner.learned == ("mug", "pan", "pen")


def test_it_drops_a_device(run_cli: Run, lda: Path, fleet: Path) -> None:
    run_cli("merge", lda, "a", "b", "--out", "fleet")
    done = run_cli("merge", lda, "fleet", "--drop", "b", "--out", "without", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["out"], found["sessions"]) == ("without", 2)
    assert found["patterns"] == {"mug": 20, "pan": 20}
    assert [device["state"] for device in found["dropped"]] == ["b"]
    done = run_cli("merge", lda, "fleet", "--drop", "b", "--out", "again")
    assert "  dropped b: 2 sessions, 2 classes, 40 patterns" in done.stdout.splitlines()


def test_what_the_bundle_shipped_with_is_said(run_cli: Run, lda: Path, fleet: Path) -> None:
    with Learner.open(lda, fleet / "a") as learner:
        learner.ship(fleet / "shipped")
    teach(fleet / "shipped", fleet / "c", ("hat", 4, 3))
    teach(fleet / "shipped", fleet / "d", ("mug", 0, 3))
    done = run_cli("merge", "shipped", "c", "d", "--out", "fleet")
    assert done.stdout.splitlines()[:4] == [
        "fleet: 2 devices, 4 sessions, 3 classes, 80 patterns",
        "  c: 1 session, 1 class, 20 patterns",
        "  d: 1 session, 1 class, 20 patterns",
        "  shipped with the bundle, counted once: 2 sessions, 2 classes, 40 patterns",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "got none; give the state folder"),
        (["a"], "at least two states to merge, or one and --drop, got 1"),
        (["a", "a"], "got a and a, which are one folder; merge each device once"),
        (["a", "./a/../a"], "which are one folder"),
        (["a", "nowhere"], "got nowhere, which does not exist; check the path"),
        (["a", "foreign"], "got foreign from another bundle"),
        (["a", "--drop", "b"], "all in a, got b with 2 that are not"),
    ],
)
def test_bad_input_is_one_line(
    error_of: Callable[..., str], lda: Path, demo: Path, fleet: Path, words: list[str], said: str
) -> None:
    Learner.open(demo, fleet / "foreign").close()
    before = sorted(fleet.rglob("*"))
    assert said in error_of("merge", lda, *words, "--out", "fleet")
    assert sorted(fleet.rglob("*")) == before


def test_an_out_that_exists(error_of: Callable[..., str], lda: Path, fleet: Path) -> None:
    assert "got b, which exists; choose another --out" in error_of(
        "merge", lda, "a", "b", "--out", "b"
    )


def test_a_strategy_that_cannot_be_merged(
    error_of: Callable[..., str], demo: Path, fleet: Path
) -> None:
    said = error_of("merge", demo, "a", "b", "--out", "fleet")
    assert "strategy cwr cannot be merged: cw, past" in said
