"""Run the real command line in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

# Code of the installed `lrtflite` script.
ENTRY = "import sys; sys.argv[0] = 'lrtflite'; from lrtflite_cli.main import main; main()"
Run = Callable[..., "subprocess.CompletedProcess[str]"]

# Code that the interpreter runs first. Packages named in LACKING cannot be imported, in this
# process and in those that it starts.
SITECUSTOMIZE = """
import os, sys
for name in os.environ["LACKING"].split():
    sys.modules[name] = None
"""


@pytest.fixture
def run_cli(tmp_path: Path) -> Run:
    """Return a function that runs a command in the test's folder, without `lacking` packages."""

    def run(*args: object, lacking: list[str] | None = None) -> subprocess.CompletedProcess[str]:
        environment = dict(os.environ)
        if lacking is not None:
            site = tmp_path / "site"
            site.mkdir(exist_ok=True)
            (site / "sitecustomize.py").write_text(SITECUSTOMIZE)
            environment["PYTHONPATH"] = os.pathsep.join(
                [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
            )
            environment["LACKING"] = " ".join(lacking)
        return subprocess.run(
            [sys.executable, "-c", ENTRY, *map(str, args)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run


@pytest.fixture
def error_of(run_cli: Run) -> Callable[..., str]:
    """Return the error of a failing command: exit code 1, no stdout, one line on stderr."""

    def error(*args: object, lacking: list[str] | None = None) -> str:
        done = run_cli(*args, lacking=lacking)
        assert done.returncode == 1, done
        assert done.stdout == ""
        [line] = done.stderr.splitlines()
        assert line.startswith("Error: ")
        return line

    return error
