"""The command `experiment`: what is refused in one line, before any work starts."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]

PLAN = '[fixed]\ndataset = "synthetic?frames=2&test_frames=1&classes=3"\n[grid]\nseed = [0, 1]\n'


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("[grid]\nsede = [1]", [], "did you mean 'seed'?"),
        ('policy = "nothing"', [], "Expected a policy of"),
        (f"[grid]\nseed = {[*range(10_001)]}", [], "got 10,001; give --yes"),
        ('dataset = "folder:nowhere"', [], "nowhere"),
        (PLAN, ["--scheduler", "tcp://127.0.0.1:9"], "Expected a Dask scheduler at tcp://127.0"),
    ],
)
def test_what_is_refused(
    run_cli: Run, tmp_path: Path, text: str, words: list[str], said: str
) -> None:
    (tmp_path / "plan.toml").write_text(text)
    done = run_cli("experiment", "plan.toml", "--out", "out", *words)
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert said in line
    assert list((tmp_path / "out").glob("*/*")) == []


def test_a_cluster_needs_its_extra(run_cli: Run, tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    words = ["experiment", "plan.toml", "--out", "out", "--scheduler", "local"]
    done = run_cli(*words, lacking=["distributed"])
    assert done.returncode == 1
    assert "[experiment]'" in done.stderr


@pytest.mark.parametrize("out", [[], ["--out", "out"]])
def test_a_dry_run_needs_nothing_but_the_plan(run_cli: Run, tmp_path: Path, out: list[str]) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    done = run_cli("experiment", "plan.toml", *out, "--dry-run")
    assert done.returncode == 0
    assert [line.split()[1:] for line in done.stdout.splitlines()] == [
        ["to", "run", "seed=0"],
        ["to", "run", "seed=1"],
    ]
    assert not (tmp_path / "out").exists()
