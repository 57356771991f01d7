"""Help of every command: quick, on the smallest install, and every command in the README."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lrtflite import __version__
from lrtflite_cli.group import COMMANDS

README = Path(__file__).parent.parent.parent / "README.md"
# Modules that take long to import, or come with an extra.
HEAVY = (
    "tensorflow",
    "tf_keras",
    "keras",
    "matplotlib",
    "rich",
    "PIL",
    "av",
    "ai_edge_litert",
    "tflite_runtime",
    "lrtflite.host",
    # The converter's tables of defaults and strategies are light, so they are not listed.
    "lrtflite_converters.conversion.making",
    "lrtflite_converters.conversion.writing",
    "lrtflite_converters.heads",
    "lrtflite_converters.training.trunk",
    # The simulator's plan is light, and has the numbers of the app protocol.
    "lrtflite_firmware_sim.device.device",
    "lrtflite_firmware_sim.device.process",
    "lrtflite_firmware_sim.reporting.plot",
    "lrtflite_firmware_sim.reporting.report",
    "lrtflite_firmware_sim.reporting.results",
    "lrtflite_firmware_sim.run",
    "lrtflite_firmware_sim.simulation",
    "lrtflite_firmware_sim.watcher",
)


@pytest.fixture(scope="module")
def helped() -> dict[str, object]:
    """Return the help of all commands, from one process that cannot import anything heavy."""
    script = f"""
import contextlib, io, json, sys, time
sys.argv[0] = "lrtflite"
for name in {HEAVY!r}:
    sys.modules[name] = None
from lrtflite_cli.group import COMMANDS
from lrtflite_cli.main import main
texts = {{}}
for command in ["", *COMMANDS]:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        main([*filter(None, [command]), "--help"])
    texts[command] = out.getvalue()
print(json.dumps({{"texts": texts, "seconds": time.process_time()}}))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_help_needs_no_extra(helped: dict[str, dict[str, str]]) -> None:
    texts = helped["texts"]
    for command, line in COMMANDS.items():
        assert re.search(rf"^  {command} +{re.escape(line)}$", texts[""], re.M)
        assert texts[command].startswith(f"Usage: lrtflite {command}")
        assert "--help" in texts[command]


def test_help_is_quick(helped: dict[str, float]) -> None:
    # CPU time of all commands together; TensorFlow alone takes about five seconds.
    assert helped["seconds"] < 3


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_in_the_readme(command: str) -> None:
    assert re.search(rf"^lrtflite {command}\b", README.read_text(encoding="utf-8"), re.M)


def test_the_installed_command() -> None:
    command = Path(sys.executable).with_name("lrtflite")
    if not command.exists():
        pytest.skip("the project is not installed next to this interpreter")
    done = subprocess.run([command, "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"lrtflite, version {__version__}\n")
