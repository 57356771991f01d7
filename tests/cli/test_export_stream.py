"""`lrtflite data --export-stream` writes the sessions that `simulate` learns."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coloured_pictures import draw_pictures


def test_the_printed_data_set_is_the_stream(
    run_cli: Callable[..., Any], error_of: Callable[..., str], tmp_path: Path
) -> None:
    things = draw_pictures(tmp_path / "things", classes=3, images=9)
    words = ("data", f"folder:{things}", "--size", "16", "--export-stream", "out")
    done = run_cli(*words, "--first-classes", "1", "--seed", "3")
    assert done.returncode == 0, done.stderr
    found = re.search(r"wrote 6 sessions: --dataset '(.*)'", done.stderr)
    assert found is not None, done.stderr
    assert found[1] == "core50:out?protocol=6&classes=3"
    same = run_cli("data", found[1], "--size", "16")
    assert "exported stream of 6 run 0, 3 of 50 classes: 6 sessions" in same.stdout
    assert "Expected a new or empty folder, got out" in error_of(*words)
