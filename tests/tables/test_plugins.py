"""Plugins: named in the environment or by an entry point, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lrtflite.tables.plugins import load_plugins

BUILT_IN = "algorithm1 balanced reservoir herding fresh"
READ = """
from lrtflite.errors import PluginError
from lrtflite.replay.policies import POLICIES
for _ in range(2):
    try:
        print(*POLICIES)
    except PluginError as error:
        print(error)
"""
PLUGIN = """
from lrtflite.replay.policies import POLICIES, algorithm1
assert "algorithm1" in POLICIES
POLICIES.register("newest", algorithm1)
"""


def read_table(folder: Path, plugins: str = "") -> list[str]:
    """Read the policies twice with `folder` on the path; return the printed lines."""
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path, "LRTFLITE_PLUGINS": plugins}
    done = subprocess.run(
        [sys.executable, "-c", READ], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_module_in_the_environment_adds_its_entries_once(tmp_path: Path) -> None:
    (tmp_path / "my_policies.py").write_text(PLUGIN)
    assert read_table(tmp_path, " my_policies, ") == [f"{BUILT_IN} newest"] * 2
    assert read_table(tmp_path) == [BUILT_IN] * 2


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (None, "No module named 'my_policies'"),
        ("raise RuntimeError('no camera\\nat all')", "no camera"),
        ("raise ValueError", "ValueError"),
        ("def broken(:", "invalid syntax (my_policies.py, line 1)"),
    ],
)
def test_a_module_that_cannot_be_imported(tmp_path: Path, code: str | None, reason: str) -> None:
    if code is not None:
        (tmp_path / "my_policies.py").write_text(code)
    # One line each time: a plugin that failed does not count as loaded.
    assert (
        read_table(tmp_path, "my_policies")
        == [
            "Expected a plugin in the module 'my_policies', named by LRTFLITE_PLUGINS, "
            f"got: {reason}; install it, or take its name out"
        ]
        * 2
    )


def distribution(folder: Path, target: str) -> None:
    """Write an installed package with the entry point `target`."""
    info = folder / "my_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[lrtflite.plugins]\nmine = {target}\n")


@pytest.mark.parametrize("target", ["my_policies", "my_policies:anything"])
def test_an_entry_point_adds_its_entries(tmp_path: Path, target: str) -> None:
    (tmp_path / "my_policies.py").write_text(PLUGIN)
    distribution(tmp_path, target)
    assert read_table(tmp_path) == [f"{BUILT_IN} newest"] * 2
    # Named twice, it is loaded once.
    assert read_table(tmp_path, "my_policies") == [f"{BUILT_IN} newest"] * 2


def test_an_entry_point_of_nothing(tmp_path: Path) -> None:
    distribution(tmp_path, "my_policies")
    assert read_table(tmp_path)[0] == (
        "Expected a plugin in the module 'my_policies', named by the entry point mine, "
        "got: No module named 'my_policies'; install it, or take its name out"
    )


def test_packages_are_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    load_plugins()
    monkeypatch.setattr("importlib.metadata.entry_points", lambda: pytest.fail("looked again"))
    load_plugins()


def test_threads_wait_for_a_plugin_that_loads(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import time\nfrom lrtflite.replay.policies import POLICIES, algorithm1\n"
        "time.sleep(0.3)\nPOLICIES.register('slow', algorithm1)\n"
    )
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from lrtflite.replay.policies import POLICIES\n"
        "with ThreadPoolExecutor(3) as pool:\n"
        "    print(list(pool.map(POLICIES.__contains__, ['slow'] * 3)))\n"
    )
    paths = [str(tmp_path), *(path for path in sys.path if path)]
    environment = {**os.environ, "LRTFLITE_PLUGINS": "slow", "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert done.stdout.strip() == "[True, True, True]", done.stderr
