"""Runs of an experiment: cells, resuming, shared latents, failures, kills."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lrtflite.errors import ConversionError, DataError, InputError, LrtfliteError
from lrtflite_firmware_sim import Simulation, simulate
from lrtflite_firmware_sim.experiment import bundles
from lrtflite_firmware_sim.experiment.cell_options import CellOptions
from lrtflite_firmware_sim.experiment.folder import ExperimentFolder, read_cells
from lrtflite_firmware_sim.experiment.jobs import CellJob, ConvertJob, run_cell
from lrtflite_firmware_sim.experiment.plan_file import parse_plan
from lrtflite_firmware_sim.experiment.running import (
    CheckedPlan,
    ExperimentEnd,
    check_experiment,
    describe,
    estimate_experiment,
    run_experiment,
)
from lrtflite_firmware_sim.experiment.template import TEMPLATE, write_template
from lrtflite_firmware_sim.experiment.workers import ThreadWorkers
from waiting import wait


def plan_text(pictures: Path, grid: str = "seed = [0, 1]", more: str = "") -> str:
    return f"""
        [fixed]
        dataset = "folder:{pictures}"
        first-classes = 2
        sessions = 2
        split-seed = 0
        {more}
        [grid]
        {grid}
    """


def checked(text: str, out: Path, **options: Any) -> CheckedPlan:
    return check_experiment(parse_plan(text, where="plan.toml"), out, **options)


class Recording:
    """Runs cells without a simulation, and counts them; cells named in `failing` fail."""

    def __init__(self, failing: Sequence[int] = (), times: int = 99) -> None:
        self.jobs: list[CellJob] = []
        self._failing, self._left = failing, times

    def __call__(self, job: CellJob, *, megabytes: float | None = None) -> dict[str, Any]:
        self.jobs.append(job)
        if job.options["seed"] in self._failing and self._left:
            self._left -= 1
            raise LrtfliteError("Cannot do it", "do something else")
        return {
            "format": 1,
            "digest": job.digest,
            "status": "done",
            "error": None,
            "attempts": job.attempts,
            "options": dict(job.options),
            "axes": dict(job.axes),
            "seconds": 0.01,
            "result": {"final_accuracy": 0.5},
        }


def run_with(run: Recording, text: str, out: Path, **options: Any) -> ExperimentEnd:
    return run_experiment(checked(text, out, **options), workers=ThreadWorkers(2, run=run))


@pytest.fixture(scope="module")
def experiment(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run two cells, which share latents."""
    out = tmp_path_factory.mktemp("experiment") / "out"
    finished = run_experiment(checked(plan_text(pictures), out))
    assert str(finished) == "2 of 2 cells done"
    return out


def test_a_cell_is_what_simulate_gives(experiment: Path) -> None:
    """From shared latents, the results are those of a run that extracts, to the last digit."""
    found = read_cells(experiment)
    assert [dict(cell.axes) for cell in found.cells] == [{"seed": 0}, {"seed": 1}]
    cell = found.cells[1]
    assert cell.record is not None
    assert cell.record["extraction"]["shared"] is True
    result = Simulation.from_json(json.dumps(cell.record["result"]))
    own = simulate(None, CellOptions.of(cell.options).simulate)
    assert result.class_accuracy == own.class_accuracy
    assert result.replay_bytes == own.replay_bytes
    for ours, theirs in zip(result.per_session, own.per_session):
        assert (ours.accuracy, ours.loss, ours.steps, ours.frames, ours.classes) == (
            theirs.accuracy,
            theirs.loss,
            theirs.steps,
            theirs.frames,
            theirs.classes,
        )


def test_class_accuracies_give_the_accuracy_of_each_session(experiment: Path) -> None:
    record = read_cells(experiment).cells[0].record
    assert record is not None
    table = np.array(record["result"]["class_accuracy"])
    # Every class has four test pictures.
    assert table.mean(axis=1).tolist() == pytest.approx(
        [session["accuracy"] for session in record["result"]["accuracy"]]
    )
    assert set(record["result"]["phase_ms"]) >= {"train", "checkpoint"}
    assert record["extraction"]["frames"] == 48  # 4 classes of 12 pictures, each extracted once


def test_a_second_call_runs_nothing(experiment: Path, pictures: Path) -> None:
    never = Recording()
    finished = run_with(never, plan_text(pictures), experiment)
    assert (never.jobs, finished.done, finished.total) == ([], 2, 2)


def test_only_changed_options_run_again(pictures: Path, tmp_path: Path) -> None:
    first, second = Recording(), Recording()
    run_with(first, plan_text(pictures, "seed = [0, 1]\nepochs = [3, 4]"), tmp_path)
    # The name of a default value changes nothing.
    again = plan_text(pictures, "epochs = [4, 5]\nseed = [0, 1, 2]", 'protocol = "nic"')
    run_with(second, again, tmp_path)
    assert len(first.jobs) == 4
    new = {(job.options["seed"], job.options["epochs"]) for job in second.jobs}
    assert new == {(2, 4), (0, 5), (1, 5), (2, 5)}


def test_changed_pictures_run_again(pictures: Path, tmp_path: Path) -> None:
    data, runs = tmp_path / "data", Recording()
    subprocess.run(["cp", "-r", str(pictures), str(data)], check=True)
    run_with(runs, plan_text(data), tmp_path / "out")
    run_with(runs, plan_text(data), tmp_path / "out")
    assert len(runs.jobs) == 2
    first, second = sorted(next(iter(sorted(data.iterdir()))).iterdir())[:2]
    first.write_bytes(second.read_bytes())
    run_with(runs, plan_text(data), tmp_path / "out")
    assert len(runs.jobs) == 4


def test_changed_pictures_behind_links_run_again(pictures: Path, tmp_path: Path) -> None:
    real, data, runs = tmp_path / "real", tmp_path / "data", Recording()
    subprocess.run(["cp", "-r", str(pictures), str(real)], check=True)
    data.mkdir()
    for folder in real.iterdir():
        (data / folder.name).symlink_to(folder)
    (next(real.iterdir()) / ".above").symlink_to(data)  # links may go in circles
    run_with(runs, plan_text(data), tmp_path / "out")
    first, second = sorted(next(iter(sorted(real.iterdir()))).glob("[!.]*"))[:2]
    first.write_bytes(second.read_bytes())
    run_with(runs, plan_text(data), tmp_path / "out")
    assert len(runs.jobs) == 4
    # A picture that is a link counts by its contents, too.
    kept = tmp_path / "kept"
    first.rename(kept)
    first.symlink_to(kept)
    run_with(runs, plan_text(data), tmp_path / "out")
    assert len(runs.jobs) == 4


def test_a_cell_that_fails_once_is_tried_again(pictures: Path, tmp_path: Path) -> None:
    runs = Recording(failing=[1], times=1)
    assert str(run_with(runs, plan_text(pictures), tmp_path)) == "2 of 2 cells done"
    assert [cell.record["attempts"] for cell in read_cells(tmp_path).cells if cell.record] == [1, 2]


def test_a_cell_that_fails_twice_is_reported_and_the_rest_goes_on(
    pictures: Path, tmp_path: Path
) -> None:
    runs = Recording(failing=[1])
    finished = run_with(runs, plan_text(pictures, "seed = [0, 1, 2]"), tmp_path)
    assert str(finished) == "2 of 3 cells done, 1 failed"
    assert finished.failed == ("seed=1",)
    record = read_cells(tmp_path).cells[1].record
    assert record is not None
    assert record["status"] == "failed"
    assert record["error"] == "Cannot do it; do something else"
    # A later call tries it again.
    assert str(run_with(Recording(), plan_text(pictures, "seed = [0, 1, 2]"), tmp_path)) == (
        "3 of 3 cells done"
    )


@pytest.mark.skipif(find_spec("tensorflow") is None, reason="needs the extra host")
def test_a_conversion_that_fails_ends_only_its_cells(
    pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(job: ConvertJob) -> None:
        raise ConversionError("Cannot convert it", "use another layer")

    monkeypatch.setattr(bundles, "run_conversion", fail)
    runs = Recording()
    joined = plan_text(pictures).replace("[grid]", "[[grid]]")
    joined += '\n[[grid]]\nstrategy = "cwr"\nseed = [5]\n'
    finished = run_with(runs, joined, tmp_path)
    assert str(finished) == "2 of 3 cells done, 1 failed"
    record = read_cells(tmp_path).cells[2].record
    assert record is not None
    assert record["error"] == "Cannot convert it; use another layer"
    assert len(runs.jobs) == 2


def test_results_of_another_version_are_refused(pictures: Path, tmp_path: Path) -> None:
    run_with(Recording(), plan_text(pictures), tmp_path)
    index = tmp_path / "experiment.json"
    index.write_text(index.read_text().replace('"numpy": "', '"numpy": "0.'))
    with pytest.raises(InputError, match=r"got results of numpy 0\.\S+; give another --out"):
        checked(plan_text(pictures), tmp_path)
    assert len(checked(plan_text(pictures), tmp_path, yes=True).cells) == 2


def test_a_folder_of_something_else_is_refused(pictures: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(InputError, match=r"got .* with thesis.txt; give another --out"):
        checked(plan_text(pictures), tmp_path)


def test_one_experiment_at_a_time(pictures: Path, tmp_path: Path) -> None:
    found = checked(plan_text(pictures), tmp_path)
    with ExperimentFolder(tmp_path).in_use(), pytest.raises(InputError, match="Another experiment"):
        run_experiment(found, workers=ThreadWorkers(run=Recording()))


def test_a_damaged_result_is_named(pictures: Path, tmp_path: Path) -> None:
    run_with(Recording(), plan_text(pictures), tmp_path)
    file = next((tmp_path / "cells").iterdir())
    file.write_text("{")
    with pytest.raises(DataError, match=f"got .*{file.name}.*; delete this file"):
        checked(plan_text(pictures), tmp_path)


def test_damaged_latents_fail_the_cell(experiment: Path, pictures: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    subprocess.run(["cp", "-r", str(experiment), str(out)], check=True)
    for cell in (out / "cells").iterdir():
        cell.unlink()
    [file] = (out / "latents").glob("*/latents.npy")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    finished = run_experiment(checked(plan_text(pictures), out))
    assert len(finished.failed) == 2
    record = read_cells(out).cells[0].record
    assert record is not None
    assert "another digest; remove this folder" in record["error"]


def test_a_rate_that_a_bundle_lacks_is_refused_before_any_work(pictures: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'momentum'"):
        checked(plan_text(pictures, more="rate.momentun = 0.5"), Path("nowhere"))
    assert not Path("nowhere").exists()


def test_a_crash_is_the_end_of_one_cell_only(pictures: Path, tmp_path: Path) -> None:
    """A cell that exceeds its RAM is an error here, not the end of this process."""
    [first, _] = checked(plan_text(pictures), tmp_path).cells
    with pytest.raises(LrtfliteError, match="within 20 MB of RAM"):
        run_cell(CellJob(first.digest, first.options, first.axes), megabytes=20)


def test_a_dry_run_lists_cells_and_changes_nothing(pictures: Path, tmp_path: Path) -> None:
    lines = describe(checked(plan_text(pictures), tmp_path / "out").cells)
    assert [line.split()[1:] for line in lines] == [
        ["to", "run", "seed=0"],
        ["to", "run", "seed=1"],
    ]
    assert not (tmp_path / "out").exists()


def test_an_estimate_runs_one_cell_of_each_kind(pictures: Path, tmp_path: Path) -> None:
    runs = Recording()
    text = plan_text(pictures, "replay-size = [10, 20]\nseed = [0, 1, 2]")
    found = estimate_experiment(checked(text, tmp_path), workers=ThreadWorkers(2, run=runs))
    assert {(job.options["replay-size"], job.options["seed"]) for job in runs.jobs} == {
        (10, 0),
        (20, 0),
    }
    # Two more of 0.01 s each of both kinds, on two workers.
    assert found.seconds == pytest.approx(0.02)


def test_the_plan_of_init_can_be_checked(tmp_path: Path) -> None:
    write_template(tmp_path / "plan.toml")
    assert len(checked((tmp_path / "plan.toml").read_text(), tmp_path / "out").cells) == 12
    with pytest.raises(InputError, match="Expected a new file"):
        write_template(tmp_path / "plan.toml")
    assert (tmp_path / "plan.toml").read_text() == TEMPLATE


def test_init_refuses_a_name_that_means_a_packaged_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of that name could never be run: the name would open the packaged plan."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="got paper:memory, a name of a packaged plan"):
        write_template("paper:memory")
    assert not list(tmp_path.iterdir())


COMMAND = [sys.executable, "-m", "lrtflite_cli.main", "experiment"]


def below(top: int) -> set[int]:
    """Return the processes that a process has started, and those that they have."""
    found = [top]
    for process in found:
        for task in Path(f"/proc/{process}/task").glob("*/children"):
            found += map(int, task.read_text().split())
    return set(found[1:])


def test_ctrl_c_leaves_finished_cells_and_no_process(pictures: Path, tmp_path: Path) -> None:
    plan, out = tmp_path / "plan.toml", tmp_path / "out"
    plan.write_text(plan_text(pictures, "seed = [0, 1, 2, 3]"))
    command = [*COMMAND, str(plan), "--out", str(out)]
    with subprocess.Popen([*command, "--workers", "1"], stderr=subprocess.PIPE, text=True) as child:
        wait(lambda: list(out.glob("cells/[0-9a-f]*.json")))
        wait(lambda: below(child.pid))
        started = below(child.pid)
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=60)
    assert child.returncode == 130
    assert said.splitlines()[-1] == "Error: Interrupted; nothing is left half-written"
    wait(lambda: not any(Path(f"/proc/{process}").exists() for process in started))
    assert 1 <= len(list(out.glob("cells/[0-9a-f]*.json"))) < 4


def test_it_goes_on_after_a_kill(pictures: Path, tmp_path: Path) -> None:
    plan, out = tmp_path / "plan.toml", tmp_path / "out"
    plan.write_text(plan_text(pictures, "seed = [0, 1, 2]"))
    command = [*COMMAND, str(plan), "--out", str(out)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        wait(lambda: list(out.glob("cells/[0-9a-f]*.json")))
        os.kill(process.pid, signal.SIGKILL)
    before = {file.name: file.stat().st_mtime_ns for file in out.glob("cells/[0-9a-f]*.json")}
    assert 1 <= len(before) < 3
    # What a kill leaves of a file that was being written.
    (out / "cells" / ".0123456789abcdef.01234567.part.json").write_text("{")
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    after = {file.name: file.stat().st_mtime_ns for file in (out / "cells").iterdir()}
    assert len(after) == 3
    assert before.items() <= after.items()
