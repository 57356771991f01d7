"""Commands of the camera loop, read from its standard input."""

from __future__ import annotations

import re
from pathlib import Path

from camera_process import SYNTHETIC, Start, labels
from lrtflite import Learner


def test_lines_are_obeyed(start: Start, tmp_path: Path) -> None:
    typed = [
        "mug",
        "",
        "  red   ball ",
        "rename mug my big mug",
        "rename my big mug cup",
        "undo",
        "undo",
        "forget nobody",
        "forget red ball",
        "x" * 300,
        "forget",
        "undo it",
        "help",
        "quit",
        "never",
    ]
    out, err = start(*SYNTHETIC).communicate("\n".join(typed) + "\n")
    assert err == ""
    learned = re.findall(r"^Learned (.*) from (\d+) frames in \d+ ms\.$", out, re.M)
    assert [name for name, _ in learned] == ["mug", "red ball"]
    assert all(1 <= int(count) <= 8 for _, count in learned)
    said = [line for line in out.splitlines() if not re.match(r"Learned|.* \d+%", line)]
    assert said[:9] == [
        "nothing learned yet",
        "Renamed mug to my big mug.",
        "Renamed my big mug to cup.",
        "Took the last change back. It knows my big mug, red ball.",
        "Nothing to undo: no earlier state is kept; make a change first",
        "Expected a known label (my big mug, red ball), got 'nobody'; give one of these",
        "Forgot red ball. It knows my big mug.",
        f"Expected a label of at most 200 characters, got 300: '{'x' * 30}'...; use a shorter name",
        "Expected `forget NAME`, got 'forget'; type it again",
    ]
    assert said[9] == "Expected `undo`, got 'undo it'; type it again"
    assert said[10].startswith("NAME  ")
    assert said[-1] == "It knows my big mug."
    assert labels(tmp_path / "state") == ["my big mug"]


def test_warnings_of_the_library_are_printed(start: Start, demo: Path, tmp_path: Path) -> None:
    with Learner.open(demo, tmp_path / "state") as learner:
        learner.rename(new="mug", slot=0)
    newest = max((tmp_path / "state").glob("state-*.safetensors"))
    newest.write_bytes(newest.read_bytes()[:100])
    out, err = start(*SYNTHETIC).communicate("quit\n")
    assert err == ""
    assert re.match(rf"[^\n]*{newest.name}[^\n]*; using the generation before it\n", out)
