"""The command `lrtflite simulate`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from coloured_pictures import draw_pictures

SHORT = ("--first-classes", "2", "--sessions", "2", "--replay-size", "10")


def start(*words: str, temporary: Path) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "TMPDIR": str(temporary),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "lrtflite_cli.main", "simulate", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def simulate(*words: str, temporary: Path) -> tuple[int, str, str]:
    process = start(*words, temporary=temporary)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_summary_on_stdout_progress_on_stderr(pictures: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    code, out, err = simulate(
        *("--dataset", f"folder:{pictures}", *SHORT),
        *("--json", str(tmp_path / "r.json"), "--report", str(tmp_path / "r.html")),
        temporary=scratch,
    )
    assert code == 0, err
    assert "accuracy, whole test set" in out
    assert "session 1/2" in err
    assert "session 1/2" not in out
    assert "TensorFlow" not in err  # messages of the runtime stay in the device's log
    found = json.loads((tmp_path / "r.json").read_text())
    assert len(found["accuracy"]) == 2
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")
    assert list(scratch.iterdir()) == []


def test_json_on_stdout_is_all_there_is(pictures: Path, tmp_path: Path) -> None:
    words = ("--dataset", f"folder:{pictures}", *SHORT, "--json", "-", "--seed", "5")
    code, out, err = simulate(*words, temporary=tmp_path)
    assert code == 0, err
    assert json.loads(out)["seed"] == 5


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("no/such/bundle",), "Expected a bundle folder"),
        (("--dataset", "nothing"), "Expected one of synthetic"),
        (("--json", "/dev/null/r.json"), "Cannot write /dev/null/r.json"),
        (("--report", "/proc/r.html"), "Cannot write /proc/r.html"),
        (("--lr", "nan"), "Expected lr"),
        (("--rival", "icarll"), "did you mean 'icarl'?"),
        (("--rival", "icarl", "--epochs", "3"), "does not train, got rates (epochs)"),
        (("--rival", "cumulative", "--diagnose"), "got --diagnose; leave it out"),
    ],
)
def test_errors_are_one_line_and_soon(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    code, out, err = simulate(*words, temporary=tmp_path)
    assert code == 1
    assert out == ""
    assert said in err
    assert len(err.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_unreadable_files_are_named_before_the_run(tmp_path: Path) -> None:
    pictures = draw_pictures(tmp_path / "pictures", classes=3, images=6)
    (pictures / "blue" / "002.png").write_bytes(b"")
    (pictures / "green" / "005.png").write_bytes(b"<html>")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    words = ("--dataset", f"folder:{pictures}", *SHORT, "--json", str(tmp_path / "r.json"))
    code, out, err = simulate(*words, temporary=scratch)
    listed = "blue/002.png (empty), green/005.png (not an image)"
    assert (code, out, err) == (
        1,
        "",
        f"Error: Expected readable files in folder:{pictures}, got 2 of 18 that cannot be read: "
        f"{listed}; replace or remove them, or add --skip-unreadable\n",
    )

    code, out, err = simulate(*words, "--skip-unreadable", temporary=scratch)
    assert code == 0, err
    note = f"2 unreadable files were left out: {listed}."
    assert f"note: {note}" in err.splitlines()
    assert f"note: {note}" in out.splitlines()
    assert note in json.loads((tmp_path / "r.json").read_text())["notes"]


def test_wrong_usage_is_exit_code_two(tmp_path: Path) -> None:
    code, _, err = simulate("--protocol", "none", temporary=tmp_path)
    assert code == 2
    assert "'nic', 'ni', 'app'" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_before_the_first_session_is_over(
    tmp_path: Path, number: signal.Signals
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    pictures = draw_pictures(tmp_path / "pictures", classes=4, images=60)
    # Enough epochs that it still trains when the signal comes.
    words = ("--dataset", f"folder:{pictures}", "--epochs", "20000", "--first-classes", "1")
    process = start(*words, "--json", str(tmp_path / "r.json"), temporary=scratch)
    assert process.stderr is not None
    while "test frames" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert out == ""
    assert err == "Error: Interrupted; nothing is left half-written\n"
    assert list(scratch.iterdir()) == []
    assert not (tmp_path / "r.json").exists()
