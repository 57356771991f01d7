"""Ctrl-C and SIGTERM at any moment: one line and exit code 130."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SIGNALS = (signal.SIGINT, signal.SIGTERM)
LINE = "Error: Interrupted; nothing is left half-written\n"

# Code that the interpreter runs first. It sends a signal when the module AT is about to be
# imported, and turns an exception of the signal handler into another, as numpy does.
SITECUSTOMIZE = """
import os, signal, sys

class Ambush:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["AT"]:
            sys.meta_path.remove(self)
            try:
                os.kill(os.getpid(), int(os.environ["NUMBER"]))
            except BaseException as error:
                raise ImportError("numpy's C-extensions failed") from error

sys.meta_path.insert(0, Ambush())
"""

Ended = tuple[int, str, str]
RunAt = Callable[..., Ended]


@pytest.fixture
def run_at(tmp_path: Path) -> RunAt:
    """Run a command that gets a signal at an import; return exit code, stdout, stderr."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(SITECUSTOMIZE)

    def run(module: str, number: signal.Signals, *words: object) -> Ended:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(site), *filter(None, sys.path)]),
            "AT": module,
            "NUMBER": str(int(number)),
        }
        command = [sys.executable, "-m", "lrtflite_cli.main", *map(str, words)]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
        )
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize(
    "module",
    [
        "click",
        "numpy",
        "numpy.linalg",
        "lrtflite.errors",
        "lrtflite_cli.commands.inspect",
        "lrtflite.bundle.bundle",
    ],
)
def test_while_it_starts(run_at: RunAt, demo: Path, module: str, number: signal.Signals) -> None:
    assert run_at(module, number, "inspect", demo) == (130, "", LINE)


@pytest.mark.parametrize("number", SIGNALS)
def test_while_stderr_is_kept_quiet(run_at: RunAt, demo: Path, number: signal.Signals) -> None:
    # `verify` redirects what the runtimes print on stderr.
    assert run_at("ai_edge_litert", number, "verify", demo) == (130, "", LINE)


@pytest.mark.parametrize("number", SIGNALS)
def test_an_import_that_turns_it_into_another_error(run_at: RunAt, number: signal.Signals) -> None:
    code, out, err = run_at("lrtflite_firmware_sim.held_out", number, "simulate")
    assert (code, out, err) == (130, "", LINE)


def handles_sigterm(process: subprocess.Popen[str]) -> bool:
    """Return whether our handlers are set; before that, Python catches only SIGINT."""
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    [caught] = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:")]
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux for the handlers")
def test_by_the_clock(demo: Path) -> None:
    """Send signals at times spread over the third of a second that `inspect` takes."""
    command = Path(sys.executable).with_name("lrtflite")
    if not command.exists():
        pytest.skip("the project is not installed next to this interpreter")
    codes = []
    for k in range(10):
        with subprocess.Popen(
            [command, "inspect", demo], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            while not handles_sigterm(process):
                assert process.poll() is None
            time.sleep(0.03 * k)
            process.send_signal(SIGNALS[k % 2])
            _, err = process.communicate(timeout=60)
        assert (process.returncode, err) in ((130, LINE), (0, "")), err
        codes.append(process.returncode)
    assert codes[0] == 130
