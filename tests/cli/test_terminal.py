"""No control character or markup of a name reaches the terminal, from any command."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from lrtflite.errors import InputError
from lrtflite_cli.commands.layers import print_table
from lrtflite_cli.group import run
from lrtflite_cli.terminal.output import say, say_json

ROOT = Path(__file__).parent.parent.parent
# Clear the screen, set the title, turn the text around, hide a character, obey rich.
ODD = "\x1b[2J\x9b1m\x07\u202e\u200b[red]x[/]:cat:"
SHOWN = "\\x1b[2J\\x9b1m\\x07\\u202e\\u200b[red]x[/]:cat:"
CONTROLS = set("\x1b\x9b\x07\u202e\u200b\x7f")


def test_only_one_file_prints() -> None:
    """Every other file of the commands says it with `say`, `say_json` or `plain`."""
    for path in (ROOT / "cli").rglob("*.py"):
        if path.parts[-2:] != ("terminal", "output.py"):
            assert not re.search(r"click\.s?echo|(?<![\w.])print\(", path.read_text()), path


def test_lines(capsys: pytest.CaptureFixture[str]) -> None:
    say(f"one\n{ODD}")
    say(ODD, err=True)
    say_json({"name": f"{ODD}\x7f"})
    out, err = capsys.readouterr()
    assert out.startswith(f"one\n{SHOWN}\n")
    assert err == f"{SHOWN}\n"
    assert json.loads(out.split("\n", 2)[2]) == {"name": f"{ODD}\x7f"}
    assert not set(out + err) & CONTROLS


def test_a_table_of_layers_with_odd_names(capsys: pytest.CaptureFixture[str]) -> None:
    cells = ("", "1", "2", "3", "", "4")
    print_table(ODD, [(ODD, *cells), ("total", *cells)])
    out = capsys.readouterr().out
    assert out.count(SHOWN) == 2
    assert not set(out) & CONTROLS


@pytest.fixture
def odd_bundle(demo: Path, tmp_path: Path) -> Path:
    """Return a bundle with control characters in every text that its manifest may have freely."""
    folder = tmp_path / "odd"
    shutil.copytree(demo, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest.update(backbone=ODD, network=ODD, tools={ODD: ODD}, strategy=ODD)
    manifest["labels"][0] = "cup\u202e"
    for rate in manifest["rates"].values():
        rate["meaning"] = ODD
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


@pytest.mark.parametrize(
    "words",
    [
        "inspect {}",
        "inspect {} --json",
        "verify {}",
        "simulate {} --sessions 1 --first-classes 1 --batch-frames 4 "
        "--dataset synthetic?classes=2&frames=8&test_frames=2",
        "simulate {} --dataset folder:{}/\x1b[2J",
        "inspect --\x1b[2J {}",
        "\x1b[2J",
    ],
)
def test_control_characters_of_a_manifest(
    words: str, odd_bundle: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = run([word.replace("{}", str(odd_bundle)) for word in words.split(" ")])
    out, err = capfd.readouterr()
    assert (code == 0) == ("\x1b" not in words), err
    assert SHOWN in out or words.startswith("verify") or code or "--json" in words
    assert not set(out + err) & CONTROLS


def test_warnings_of_the_library(
    odd_bundle: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import logging

    def warn(path: object) -> None:
        logging.getLogger("lrtflite").warning("The state %s is damaged", ODD)
        raise InputError(f"Expected a state, got {ODD}")

    monkeypatch.setattr("lrtflite.state.summary.summarise", warn)
    assert run(["state", str(tmp_path)]) == 1
    err = capfd.readouterr().err
    assert err == f"Warning: The state {SHOWN} is damaged\nError: Expected a state, got {SHOWN}\n"
