"""Experiments that convert: each bundle once, in a child process, with latents in common."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from lrtflite_firmware_sim.experiment import bundles
from lrtflite_firmware_sim.experiment.folder import read_cells
from lrtflite_firmware_sim.experiment.jobs import ConvertJob
from lrtflite_firmware_sim.experiment.plan_file import parse_plan
from lrtflite_firmware_sim.experiment.running import check_experiment, run_experiment


@pytest.mark.skipif(find_spec("tensorflow") is None, reason="needs the extra host")
def test_bundles_are_converted_once_and_latents_shared(
    pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = parse_plan(
        f"""
        dataset = "folder:{pictures}"
        split-seed = 0
        first-classes = 2
        sessions = 1
        classes = 6
        [grid]
        strategy = ["cwr", "lda"]
        seed = [0, 1]
        """,
        where="plan.toml",
    )
    had_tensorflow = "tensorflow" in sys.modules
    finished = run_experiment(check_experiment(plan, tmp_path))
    assert str(finished) == "4 of 4 cells done"
    assert len(list((tmp_path / "bundles").glob("*/manifest.json"))) == 2
    # Both strategies have the same layers below the replay layer.
    assert len(list((tmp_path / "latents").glob("*/index.json"))) == 1
    records = [cell.record for cell in read_cells(tmp_path).cells if cell.record]
    assert [record["result"]["bundle"]["strategy"] for record in records] == [
        "cwr",
        "cwr",
        "lda",
        "lda",
    ]
    assert all(record["extraction"]["shared"] for record in records)
    assert ("tensorflow" in sys.modules) == had_tensorflow, "conversions run in child processes"

    # A damaged bundle is converted again; the other one is not.
    damaged = next((tmp_path / "bundles").iterdir()) / "head.tflite"
    damaged.write_bytes(b"damaged")
    for cell in (tmp_path / "cells").iterdir():
        cell.unlink()
    jobs: list[ConvertJob] = []

    def stop(job: ConvertJob) -> None:
        jobs.append(job)
        raise KeyboardInterrupt

    monkeypatch.setattr(bundles, "run_conversion", stop)
    with pytest.raises(KeyboardInterrupt):
        run_experiment(check_experiment(plan, tmp_path))
    assert [Path(job.out) for job in jobs] == [damaged.parent]
