"""The camera loop as a service: no keyboard, commands through a FIFO, a systemd unit."""

from __future__ import annotations

import configparser
import os
import re
import signal
import subprocess
import time
from pathlib import Path

from camera_process import ROOT, SYNTHETIC, Start, labels, wait_for


def cpu_seconds(process: subprocess.Popen[str]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_commands_through_a_fifo(start: Start, tmp_path: Path) -> None:
    """Teach two classes through a FIFO, and send SIGTERM while the third is recorded."""
    fifo = tmp_path / "commands"
    lessons = ("--camera", "synthetic", "--seconds", "0.8")
    process = start(*lessons, "--commands", "commands", stdin=subprocess.DEVNULL)
    wait_for(process, "nothing learned yet")
    used = cpu_seconds(process)
    time.sleep(1)
    # Waiting takes 0.04 s of CPU; polling a closed input would take all of it.
    assert cpu_seconds(process) - used < 0.3
    for name in ("mug", "ball"):  # two writers, each of which closes the FIFO
        fifo.write_text(f"{name}\n")
        wait_for(process, f"Learned {name}")
    fifo.write_text("hat\n")
    time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate()
    assert (process.returncode, err) == (130, "Interrupted; finished sessions are kept\n")
    assert "hat" not in out
    assert "\033" not in out
    assert labels(tmp_path / "state") == ["mug", "ball"]


def test_a_plain_file_is_refused_as_a_fifo(start: Start, tmp_path: Path) -> None:
    (tmp_path / "commands").write_text("mug")
    process = start(*SYNTHETIC, "--commands", "commands")
    assert process.communicate()[1] == (
        "Error: Expected a FIFO for commands, got the file commands; remove it\n"
    )
    assert process.returncode == 1


def test_the_unit_in_the_docs_starts_this_loop(start: Start) -> None:
    page = (ROOT / "docs" / "device.md").read_text(encoding="utf-8")
    [text] = re.findall(r"^```ini\n(.*?)^```", page, re.M | re.S)
    unit = configparser.ConfigParser(interpolation=None, delimiters=["="])
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text.replace("\\\n", ""))
    service = unit["Service"]
    python, script, _, *words = service["ExecStart"].split()
    assert Path(python).parent.parent.parent == Path(service["WorkingDirectory"])
    assert (ROOT / "examples" / script).is_file()
    options = dict(zip(words[::2], words[1::2]))
    assert set(options) == {"--camera", "--state", "--commands"}
    help_text, _ = start("--help").communicate()
    assert all(f"{option} " in help_text for option in options)
    # The unit may write state and FIFO, and a stop is not a failure that restarts it.
    assert Path(options["--state"]).parent == Path("/var/lib") / service["StateDirectory"]
    assert Path(options["--commands"]).parent == Path("/run") / service["RuntimeDirectory"]
    assert (service["KillSignal"], service["SuccessExitStatus"]) == ("SIGTERM", "130")
    assert service["Restart"] == "on-failure"
