"""A simulation that ends early keeps its results so far."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from coloured_pictures import draw_pictures
from lrtflite import LrtfliteError, Progress
from lrtflite_firmware_sim import SimulateOptions, Simulation, load_simulation, simulate
from lrtflite_firmware_sim.device.process import DeviceProcess
from lrtflite_firmware_sim.reporting.report import html_report
from lrtflite_firmware_sim.reporting.results import SessionResult, Spread
from lrtflite_firmware_sim.reporting.summary import summary
from lrtflite_firmware_sim.watcher import Watcher


class Stopper(Watcher):
    """A watcher that raises in some phase of a session."""

    def __init__(self, session: int, phase: str, error: BaseException) -> None:
        self._session, self._phase, self._error = session, phase, error
        self._done = 0

    def step(self, progress: Progress) -> None:
        if (self._done + 1, progress.phase) == (self._session, self._phase):
            raise self._error

    def learned(self, result: SessionResult) -> None:
        self._done = result.session


def stopped(
    options: SimulateOptions, watcher: Watcher, error: type[BaseException]
) -> list[Simulation]:
    found: list[Simulation] = []
    with pytest.raises(error):
        simulate(None, options, watcher=watcher, on_stopped=found.append)
    return found


NO_TIME = Spread(0, 0, 0)


def untimed(result: Simulation) -> Simulation:
    """Return a result without values that depend on a clock, RAM or the time of the end."""
    return replace(
        result,
        per_session=tuple(replace(session, session_ms=0) for session in result.per_session),
        latency_ms={},
        phase_ms=dict.fromkeys(result.phase_ms, 0.0),
        session_ms=NO_TIME,
        session_ms_p50=0,
        peak_ram_mb=0,
    )


@pytest.mark.parametrize("phase", ["extract", "train", "test"])
def test_the_sessions_before_it_are_kept(options: SimulateOptions, phase: str) -> None:
    [found] = stopped(options, Stopper(3, phase, KeyboardInterrupt()), KeyboardInterrupt)
    whole = simulate(None, replace(options, sessions=2))
    expected = replace(whole, incomplete="Interrupted after 2 of 7 sessions")
    retimed = replace(found, session_ms=whole.session_ms, session_ms_p50=whole.session_ms_p50)
    assert untimed(retimed) == untimed(expected)
    counts = {phase: spread.n for phase, spread in whole.latency_ms.items() if phase != "infer"}
    assert {phase: spread.n for phase, spread in found.latency_ms.items()} == counts
    assert found.session_ms.n == 2
    assert 25 < found.peak_ram_mb < 250


def test_before_the_first_session_is_over_there_is_nothing(options: SimulateOptions) -> None:
    assert stopped(options, Stopper(1, "train", KeyboardInterrupt()), KeyboardInterrupt) == []
    error = LrtfliteError("Expected more")
    assert stopped(options, Stopper(1, "test", error), LrtfliteError) == []


def test_a_device_that_dies_takes_nothing_with_it(
    options: SimulateOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices: list[DeviceProcess] = []
    enter = DeviceProcess.__enter__

    def remember(device: DeviceProcess) -> DeviceProcess:
        devices.append(device)
        return enter(device)

    class Killer(Watcher):
        def learned(self, result: SessionResult) -> None:
            if result.session == 2:
                devices[0].process.kill()

    monkeypatch.setattr(DeviceProcess, "__enter__", remember)
    [found] = stopped(options, Killer(), LrtfliteError)
    assert found.incomplete is not None
    assert found.incomplete.startswith(
        "Stopped after 2 of 7 sessions: The device process was killed by SIGKILL"
    )


def test_incomplete_results_are_marked(simulated: Simulation, tmp_path: Path) -> None:
    said = "Interrupted after 7 of 91 sessions"
    cut = replace(simulated, incomplete=said)
    (tmp_path / "r.json").write_text(cut.to_json())
    assert load_simulation(tmp_path / "r.json") == cut
    assert summary(cut).splitlines()[0] == f"INCOMPLETE: {said}"
    assert "INCOMPLETE" not in summary(simulated)
    page = html_report(cut)
    assert f'<p class="incomplete">{said}.</p>' in page
    assert ", incomplete</h1>" in page
    assert '<p class="incomplete">' not in html_report(simulated)


def test_results_from_before_they_could_be_incomplete(simulated: Simulation) -> None:
    older = json.loads(simulated.to_json())
    assert older.pop("incomplete") is None
    assert Simulation.from_json(json.dumps(older)) == simulated


@contextmanager
def running(*words: object, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Start `lrtflite simulate` and wait for its first session; many more follow."""
    pictures = draw_pictures(folder / "pictures", classes=3, images=60)
    scratch = folder / "scratch"
    scratch.mkdir()
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "TMPDIR": str(scratch),
    }
    command = [sys.executable, "-m", "lrtflite_cli.main", "simulate", "--first-classes", "1"]
    command += ["--dataset", f"folder:{pictures}", *map(str, words)]
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        while not process.stderr.readline().startswith("session 1/"):
            assert process.poll() is None
        yield process
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_results_are_written(tmp_path: Path, number: signal.Signals) -> None:
    files = ("--json", "r.json", "--report", "r.html", "--epochs", "300")
    with running(*files, folder=tmp_path) as process:
        process.send_signal(number)
        process.send_signal(number)  # pressed twice
        out, err = process.communicate(timeout=60)
    found = load_simulation(tmp_path / "r.json")
    said = f"Interrupted after {found.sessions} of 6 sessions"
    assert found.incomplete == said
    assert (process.returncode, err.splitlines()[-1]) == (
        130,
        f"Error: {said}; wrote r.json and r.html",
    )
    assert err.count("Error:") == 1
    assert out.splitlines()[0] == f"INCOMPLETE: {said}"
    assert ", incomplete</h1>" in (tmp_path / "r.html").read_text()


def test_a_picture_that_turns_out_damaged_stops_it(tmp_path: Path) -> None:
    with running("--json", "-", "--epochs", "50", folder=tmp_path) as process:
        # Header and end of the file are intact.
        for path in (tmp_path / "pictures").rglob("*.png"):
            content = bytearray(path.read_bytes())
            content[60:80] = bytes(20)
            path.write_bytes(content)
        out, err = process.communicate(timeout=60)
    found = Simulation.from_json(out)
    assert found.incomplete is not None
    assert "Expected a readable image" in found.incomplete
    assert process.returncode == 1
    expected = f"Error: {found.incomplete}; the figures cover these sessions only"
    assert err.splitlines()[-1] == expected
    assert err.count("Error:") == 1


def test_a_report_that_cannot_be_written(tmp_path: Path) -> None:
    words = ("--report", "gone/r.html", "--json", "r.json", "--sessions", "2", "--epochs", "50")
    with running(*words, folder=tmp_path) as process:
        (tmp_path / "gone").touch()
        out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "accuracy, whole test set" in out
    assert load_simulation(tmp_path / "r.json").incomplete is None
    [line] = [line for line in err.splitlines() if "Error" in line]
    assert line.startswith("Error: Cannot write gone/r.html: Not a directory")
    assert line.endswith("; wrote r.json")
