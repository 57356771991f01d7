"""`lrtflite state`: what is inside a state."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from learning import TRAINING, latents_of
from lrtflite import Learner
from lrtflite.bundle.bundle import INITIAL_FILE
from lrtflite.errors import StateError
from lrtflite_cli.group import cli
from states import contents, put


@pytest.fixture
def taught(open_learner: Callable[..., Learner], tmp_path: Path) -> Path:
    learner = open_learner(tmp_path / "state", replay_size=60)
    for kind, label in enumerate(("cup", "hat", "pen")):
        learner.learn_latents(latents_of(kind, 30), label, training=TRAINING)
    learner.forget("hat")
    learner.close()
    return tmp_path / "state"


def test_it_shows_classes_counts_and_sizes(taught: Path) -> None:
    before = contents(taught)
    said = CliRunner().invoke(cli, ["state", str(taught)]).output
    assert "sessions  3" in said
    assert "50: 2 labelled" in said
    assert "of 60 latents, algorithm1, raw, 1,024 bytes each" in said
    assert "cup       30 patterns taught" in said
    assert "hat" not in said
    assert "session 1" not in said
    assert contents(taught) == before


def test_history_says_what_each_session_did(taught: Path) -> None:
    said = CliRunner().invoke(cli, ["state", str(taught), "--history"]).output
    assert "session 1  30 of cup" in said
    assert "session 2  30 of (forgotten)" in said


def test_json(taught: Path) -> None:
    found = json.loads(CliRunner().invoke(cli, ["state", str(taught), "--json"]).output)
    assert (found["sessions"], found["slots"], found["replay_size"]) == (3, 50, 60)
    assert [each["label"] for each in found["classes"]] == ["cup", "pen"]
    assert sum(each["rows"] for each in found["classes"]) == found["rows"]
    files = [path for path in taught.glob("*.safetensors") if path.name != "checked.json"]
    assert 0 < found["bytes"] <= sum(path.stat().st_size for path in files)
    assert "history" not in found


def test_a_shipped_state_is_a_file(open_learner: Callable[..., Learner], tmp_path: Path) -> None:
    learner = open_learner()
    learner.learn_latents(latents_of(0, 30), "cup", training=TRAINING)
    shipped = learner.ship(tmp_path / "bundle")
    said = CliRunner().invoke(cli, ["state", str(shipped.path / INITIAL_FILE)]).output
    assert "30 patterns taught, 30 latents kept" in said


def test_a_file_of_an_earlier_format_and_a_link(taught: Path, tmp_path: Path) -> None:
    earlier = Path(__file__).parents[1] / "formats" / "state-4" / "state-00000001.npz"
    done = CliRunner().invoke(cli, ["state", str(earlier)])
    assert "got format 4 or earlier" in str(done.exception)
    (tmp_path / "link").symlink_to(max(taught.glob("state-*")))
    assert CliRunner().invoke(cli, ["state", str(tmp_path / "link")]).exit_code == 0


def test_bad_input_gets_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    put(folder, 1)
    for path in folder.iterdir():
        path.write_bytes(b"")
    for path in (tmp_path, tmp_path / "none", folder):
        done = CliRunner().invoke(cli, ["state", str(path)])
        assert isinstance(done.exception, StateError)
        assert "\n" not in str(done.exception)
