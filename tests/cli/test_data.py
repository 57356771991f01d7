"""`lrtflite data`, and the data sets in help texts and in the guide."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from coloured_pictures import draw_pictures
from lrtflite.data import open_source
from lrtflite.data.media import ANIMATIONS, STILLS, VIDEOS
from lrtflite.data.registry import SOURCES, usage
from lrtflite.data.sheet import contact_sheet

Run = Callable[..., Any]
GUIDE = Path(__file__).parent.parent.parent / "docs" / "data.md"


def add_animation(folder: Path, frames: int) -> None:
    folder.mkdir()
    first, *rest = [Image.new("L", (4, 4), i) for i in range(frames)]
    first.save(folder / "a.gif", save_all=True, append_images=rest, duration=100)


def test_the_table(run_cli: Run, tmp_path: Path) -> None:
    things = draw_pictures(tmp_path / "things", classes=2, images=12)
    add_animation(things / "茶", 60)
    (things / "blue" / "003.png").write_bytes(b"")
    done = run_cli("data", "folder:things", "--size", "32", "--skip-unreadable", "--sheet", "s.png")
    assert (done.returncode, done.stderr) == (0, "wrote s.png\n")
    assert done.stdout.splitlines() == [
        "folder:things: 32 x 32 frames",
        "",
        "class  kind      training clips  frames  test clips  frames",
        "amber  pictures               8       8           4       4",
        "blue   pictures               7       7           4       4",
        "茶     videos                 1      30           1      20",
        "all 3                        16      45           9      28",
        "",
        "note: 1 unreadable file was left out: blue/003.png (empty).",
        "note: 茶: one video only; its last third, after a gap, is the test: expect figures to be "
        "optimistic.",
    ]
    with Image.open(tmp_path / "s.png") as sheet:
        assert sheet.format == "PNG"
        assert sheet.height > 3 * 96


def test_json(run_cli: Run, tmp_path: Path) -> None:
    done = run_cli(
        "data", "synthetic?classes=cup-1,can-2&frames=5", "--json", lacking=["PIL", "rich"]
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert [each["name"] for each in found["classes"]] == ["can-2", "cup-1"]
    assert found["train"] == {"clips": 16, "frames": 80}
    assert found["test"] == {"clips": 6, "frames": 60}
    assert found["notes"] == []


def test_the_seed_is_the_one_of_other_commands(run_cli: Run, tmp_path: Path) -> None:
    things = draw_pictures(tmp_path / "things", classes=1, images=6)
    run_cli("data", f"folder:{things}", "--seed", "1", "--size", "16", "--sheet", "s.png")
    sheet = (tmp_path / "s.png").read_bytes()
    assert sheet == contact_sheet(open_source(f"folder:{things}", size=16, seed=1))
    assert sheet != contact_sheet(open_source(f"folder:{things}", size=16, seed=0))
    words = ("--seed", "7", "--split-seed", "1", "--size", "16", "--sheet", "split.png")
    run_cli("data", f"folder:{things}", *words)
    assert (tmp_path / "split.png").read_bytes() == sheet


def test_an_error_is_one_line(error_of: Callable[..., str], tmp_path: Path) -> None:
    draw_pictures(tmp_path / "things", classes=2, images=3)
    assert error_of("data", "things").endswith("got 'things'; did you mean 'folder:things'?")
    assert "did you mean 'amber'?" in error_of("data", "folder:things?classes=ambr")
    assert "--sheet to end in .png, got s.jpg; rename it" in error_of(
        "data", "synthetic", "--sheet", "s.jpg"
    )
    assert "Cannot write" in error_of("data", "synthetic", "--sheet", "/dev/null/s.png")
    words = ["data", "synthetic", "--sheet", "s.png"]
    assert "[device]" in error_of(*words, lacking=["PIL"])
    assert not (tmp_path / "s.png").exists()


@pytest.mark.parametrize("option", ["--first-classes", "--visits", "--batch-frames"])
def test_options_of_sessions_need_an_export(error_of: Callable[..., str], option: str) -> None:
    error = error_of("data", "synthetic", option, "2")
    assert f"Expected --export-stream DIR with {option}, got none" in error


def test_the_guide_shows_what_is_printed(run_cli: Run) -> None:
    done = run_cli("data", "synthetic?classes=3")
    assert f"```text\n{done.stdout}```" in GUIDE.read_text(encoding="utf-8")


@pytest.mark.parametrize("command", ["data", "simulate", "teach", "train"])
def test_help_has_every_data_set(run_cli: Run, command: str) -> None:
    done = run_cli(command, "--help")
    words = " ".join(done.stdout.split())
    for name, entry in SOURCES.items():
        assert usage(name) in words
        assert entry.summary in words


def test_the_guide_has_every_data_set() -> None:
    named = re.findall(r"^\| `([\w:-]+)` \| [^|]* \|$", GUIDE.read_text(encoding="utf-8"), re.M)
    assert sorted(named) == sorted(map(usage, SOURCES))


def test_the_guide_has_every_format_and_setting() -> None:
    guide = GUIDE.read_text(encoding="utf-8")
    for kind, suffixes in {"pictures": STILLS, "animations": ANIMATIONS, "videos": VIDEOS}.items():
        [row] = [line for line in guide.splitlines() if line.startswith(f"| {kind}")]
        assert tuple(re.findall(r"`(\.\w+)`", row)) == suffixes
    for name, settings in {
        "folder:PATH": ["test"],
        "tm:PATH": ["test"],
        "synthetic": ["frames", "test_frames"],
        "core50:PATH": ["labels", "protocol", "run", "lists", "stride"],
        "openloris:PATH": ["factor", "lists", "stride"],
    }.items():
        assert re.findall(rf"^\| `{name}` \| `(\w+)` \|", guide, re.M) == settings
