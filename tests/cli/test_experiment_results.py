"""`lrtflite experiment` ends with results, on CORe50's layout by a path as on drawn videos."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PLAN = """
[fixed]
dataset = "synthetic"
first-classes = 2
[grid]
replay-size = [10]
seed = [0, 1]
[report.paper]
dataset = "CORe50"
[[report.published]]
name = "a row"
source = "table 9"
match = { replay-size = 10 }
benchmark = "NICv2-391"
accuracy = 50.0
"""
SMALL = "dataset=synthetic?classes=3&frames=4&test_frames=2"


@pytest.mark.slow
def test_an_exported_stream_beside_the_paper(
    run_cli: Callable[..., Any], error_of: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    done = run_cli("data", SMALL[8:], "--export-stream", "stream", "--first-classes", "2")
    assert done.returncode == 0, done.stderr
    lists = tmp_path / "stream" / "batches_filelists"
    [named] = lists.iterdir()
    # The published lists of NICv2-391 have this name.
    named.rename(lists / "NIC_v2_391")
    words = ("experiment", "plan.toml", "--out", "out", "--set", "dataset=core50:stream?classes=3")
    done = run_cli(*words)
    assert done.returncode == 0, done.stderr
    titles, row = done.stdout.splitlines()[:2]
    assert titles.startswith("row of the paper  ours is")
    assert row.startswith("a row")
    assert row.split()[-2:] == ["table", "9"]
    assert "- data: core50:stream?classes=3, not all of CORe50" in done.stdout.splitlines()
    found = {path.name for path in (tmp_path / "out").glob("results.*")}
    assert found >= {"results.csv", "results.jsonl", "results.md", "results.tex"}
    assert len((tmp_path / "out" / "results.jsonl").read_text().splitlines()) == 2
    error = error_of(*words, "--curves", "plan.toml")
    assert "Expected the published curves of NICv2-79 in plan.toml" in error
    error = error_of(*words, "--curves", "none.zip")
    assert "in none.zip, got: No such file or directory; give the zip" in error
    error = error_of("experiment", "none.toml", "--out", "other")
    assert "Expected a plan file, got none.toml: No such file or directory;" in error
    error = error_of("experiment", "paper:memry", "--out", "other")
    assert "did you mean paper:memory?" in error
    assert not (tmp_path / "other").exists()
