"""Commands warn about --replay-size 0, and go on."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import lrtflite.workbench.teaching
import lrtflite_firmware_sim
from coloured_pictures import draw_pictures
from fake_bundle import TRAINING, make_bundle
from lrtflite.errors import LrtfliteError
from lrtflite_cli.commands import simulate, teach


@pytest.fixture
def sums(tmp_path: Path) -> Path:
    """A bundle whose head is solved from sums."""
    feeding = replace(TRAINING.feeding, replays=False)
    return make_bundle(tmp_path / "sums", training=replace(TRAINING, feeding=feeding))


@pytest.mark.parametrize("rival", [None, "icarl"])
def test_sums_need_no_memory(
    rival: str | None, sums: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rival keeps latents, whatever the bundle does."""

    def learn(*_: object, **__: object) -> None:
        raise LrtfliteError("here it would learn")

    monkeypatch.setattr(lrtflite_firmware_sim, "simulate", learn)
    words = [str(sums), "--replay-size", "0", *(("--rival", rival) if rival else ())]
    done = CliRunner().invoke(simulate.command, words)
    assert str(done.exception) == "here it would learn"
    assert ("Warning" in done.stderr) == (rival is not None)


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize("name", ["simulate", "teach"])
def test_no_memory_is_said_once(
    name: str, size: int, demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def learn(*_: object, **__: object) -> None:
        raise LrtfliteError("here it would learn")

    monkeypatch.setattr(lrtflite_firmware_sim, "simulate", learn)
    monkeypatch.setattr(lrtflite.workbench.teaching, "teach", learn)
    draw_pictures(tmp_path / "things", classes=2, images=2)
    words = ["--dataset", f"folder:{tmp_path / 'things'}", "--replay-size", str(size)]
    command = {"simulate": simulate.command, "teach": teach.command}[name]
    if name == "teach":
        words += ["--out", str(tmp_path / "out")]
    done = CliRunner().invoke(command, [str(demo), *words])
    assert str(done.exception) == "here it would learn"
    said = re.findall(r"^Warning: --replay-size 0 .*forgets old classes.*$", done.stderr, re.M)
    assert len(said) == (size == 0)
