"""The camera loop as a person and as a service manager run it, in a process of its own."""

from __future__ import annotations

import configparser
import fcntl
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from lrtflite import Learner
from lrtflite.checkpoint import newest_state

ROOT = Path(__file__).parent.parent
QUICK = ("--seconds", "0.4", "--fps", "20")
SYNTHETIC = ("--camera", "synthetic", *QUICK)
Start = Callable[..., "subprocess.Popen[str]"]
# Shows bricks until there is a file "unplugged".
FAKE_PICAMERA2 = """
import numpy as np, os, time
class Picamera2:
    @staticmethod
    def global_camera_info(): return [{"Model": "imx708", "Num": 0}]
    def __enter__(self): return self
    def __exit__(self, *_): print("closed", flush=True)
    def create_video_configuration(self, main): return main
    def configure(self, main): self.main = main
    def start(self): assert self.main["size"] == (640, 480)
    def capture_array(self):
        time.sleep(0.02)
        if os.path.exists("unplugged"): raise RuntimeError("Camera frontend has timed out!")
        return np.load("bricks.npy")
"""


@pytest.fixture
def start(demo: Path, tmp_path: Path) -> Iterator[Start]:
    """Start the loop in the test's temporary folder; its state is there."""
    started = []

    def loop(*words: str, **options: Any) -> subprocess.Popen[str]:
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        command = [sys.executable, str(ROOT / "examples" / "camera_loop.py"), str(demo), *words]
        options = {**pipes, "cwd": tmp_path, "text": True, **options}
        process: subprocess.Popen[str] = subprocess.Popen(command, **options)
        # So that nothing waits for a line that does not come.
        started.append((process, threading.Timer(60, process.kill)))
        started[-1][1].start()
        return process

    yield loop
    for process, timer in started:
        timer.cancel()
        with process:
            process.kill()


def wait_for(process: subprocess.Popen[str], wanted: str) -> None:
    """Read the log up to the line with `wanted`."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if wanted in line:
            return
    raise AssertionError(f"no {wanted!r} in {lines}; {process.communicate()[1]}")


def labels(state: Path) -> list[str]:
    return [label for label in newest_state(state).meta["labels"] if label is not None]


def picture(kind: int, seed: int) -> np.ndarray:
    """(96, 128, 3) uint8: broad stripes or fine checks, in colours of their own, with noise."""
    rows, columns = np.indices((96, 128))
    shape = (columns // 24 % 2) if kind == 0 else (rows // 6 + columns // 6) % 2
    light, dark = (((230, 60, 40), (90, 10, 10)), ((40, 90, 230), (230, 230, 120)))[kind]
    plain = np.where(shape[..., np.newaxis], light, dark)
    noise = np.random.default_rng(seed).normal(0, 12, (96, 128, 3))
    return np.clip(plain + noise, 0, 255).astype(np.uint8)


def test_lines_are_obeyed(start: Start, tmp_path: Path) -> None:
    typed = [
        "mug",
        "",
        "  red   ball ",
        "rename mug my big mug",
        "rename my big mug cup",
        "undo",
        "undo",
        "forget nobody",
        "forget red ball",
        "x" * 300,
        "forget",
        "undo it",
        "help",
        "quit",
        "never",
    ]
    out, err = start(*SYNTHETIC).communicate("\n".join(typed) + "\n")
    assert err == ""
    learned = re.findall(r"^Learned (.*) from (\d+) frames in \d+ ms\.$", out, re.M)
    assert [name for name, _ in learned] == ["mug", "red ball"]
    assert all(1 <= int(count) <= 8 for _, count in learned)
    said = [line for line in out.splitlines() if not line.startswith("Learned")]
    assert said[:9] == [
        "nothing learned yet",
        "Renamed mug to my big mug.",
        "Renamed my big mug to cup.",
        "Took the last change back. It knows my big mug, red ball.",
        "Nothing to undo: no earlier state is kept",
        "Expected a known label (my big mug, red ball), got 'nobody'",
        "Forgot red ball. It knows my big mug.",
        f"Expected a label of at most 200 characters, got 300: '{'x' * 30}'...; use a shorter name",
        "Expected `forget NAME`, got 'forget'",
    ]
    assert said[9] == "Expected `undo`, got 'undo it'"
    assert said[10].startswith("NAME  ")
    assert said[-1] == "It knows my big mug."
    assert labels(tmp_path / "state") == ["my big mug"]


class Terminal:
    """The side of a pseudo-terminal that a person sits at."""

    def __init__(self) -> None:
        self._end, self.its_end = pty.openpty()
        self._seen = ""

    def read_until(self, wanted: str) -> str:
        """What appeared since the last call, up to and with `wanted`."""
        while wanted not in self._seen:
            try:
                self._seen += os.read(self._end, 4096).decode()
            except OSError:
                raise AssertionError(f"no {wanted!r} in {self._seen!r}") from None
        before, _, self._seen = self._seen.partition(wanted)
        return before + wanted

    def type(self, keys: str) -> None:
        os.write(self._end, keys.encode())

    def close(self) -> None:
        os.close(self._end)


@pytest.mark.parametrize(
    ("keys", "code", "err"),
    [
        ("\x03", 130, "Interrupted; what was learned is kept\n"),  # Ctrl-C
        ("\x04", 0, ""),  # Ctrl-D
        ("quit\n", 0, ""),
    ],
)
def test_a_terminal(start: Start, tmp_path: Path, keys: str, code: int, err: str) -> None:
    terminal = Terminal()
    process = start(
        *SYNTHETIC,
        stdin=terminal.its_end,
        stdout=terminal.its_end,
        start_new_session=True,
        # Ctrl-C is for those whose controlling terminal it is typed at.
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(terminal.its_end)
    first = terminal.read_until("nothing learned yet")
    assert first.startswith("Show a thing to the camera, type its name and press Enter.\r\n")
    for command in ("NAME", "undo", "rename OLD NEW", "forget NAME", "help", "quit"):
        assert re.search(rf"^{command}  ", first, re.M)
    assert "It knows nothing yet." in first
    terminal.type("mug\n")
    assert "looking at mug, 0 of 0.4 s" in terminal.read_until("Learned mug from ")
    # The answer is written on the line above the one that is typed in.
    terminal.read_until("\0337\033[A\r\033[Kmug 100%\0338")
    terminal.type(keys)
    assert process.communicate()[1] == err
    assert process.returncode == code
    terminal.close()
    assert labels(tmp_path / "state") == ["mug"]


def cpu_seconds(process: subprocess.Popen[str]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_service(start: Start, tmp_path: Path) -> None:
    """No keyboard, commands through a FIFO, ended by SIGTERM while it records."""
    fifo = tmp_path / "commands"
    lessons = ("--camera", "synthetic", "--seconds", "0.8")
    process = start(*lessons, "--commands", "commands", stdin=subprocess.DEVNULL)
    wait_for(process, "nothing learned yet")
    used = cpu_seconds(process)
    time.sleep(1)
    # Waiting takes 0.04 s of CPU; reading the end of the input again and again takes what it gets.
    assert cpu_seconds(process) - used < 0.3
    for name in ("mug", "ball"):  # two writers, each of which closes the FIFO
        fifo.write_text(f"{name}\n")
        wait_for(process, f"Learned {name}")
    fifo.write_text("hat\n")
    time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate()
    assert (process.returncode, err) == (130, "Interrupted; what was learned is kept\n")
    assert "hat" not in out
    assert "\033" not in out
    assert labels(tmp_path / "state") == ["mug", "ball"]


def test_commands_come_from_a_fifo_only(start: Start, tmp_path: Path) -> None:
    (tmp_path / "commands").write_text("mug")
    process = start(*SYNTHETIC, "--commands", "commands")
    assert process.communicate()[1] == (
        "Error: Expected a FIFO for commands, got commands; remove it\n"
    )
    assert process.returncode == 1


def test_videos_are_learned_and_told_apart(start: Start, tmp_path: Path) -> None:
    for kind in range(2):
        with av.open(str(tmp_path / f"{kind}.mp4"), "w") as container:
            stream = container.add_stream("mpeg4", rate=10)
            stream.height, stream.width = picture(kind, 0).shape[:2]
            for k in range(30):
                frame = av.VideoFrame.from_ndarray(picture(kind, k), format="rgb24")
                container.mux(stream.encode(frame))
            container.mux(stream.encode())

    for kind, name in enumerate(("bricks", "tiles")):
        out, err = start("--video", f"{kind}.mp4", *QUICK).communicate(f"{name}\nquit\n")
        assert err == ""
        [count] = re.findall(rf"^Learned {name} from (\d+) frames", out, re.M)
        assert 1 <= int(count) <= 5, "0.4 s of 10 frames a second"
    out, _ = start("--video", "1.mp4").communicate("quit\n")
    assert re.fullmatch(r"tiles \d+%, bricks \d+%\n", out)

    # A lesson that is longer than the video ends with it.
    begun = time.monotonic()
    process = start("--video", "0.mp4", "--speed", "1.5", "--seconds", "60", "--fps", "100")
    out, err = process.communicate("bricks\n")
    assert time.monotonic() - begun > 2.9 / 1.5, "it plays at its own pace"
    assert (process.returncode, err) == (0, "")
    first, learned, last = out.splitlines()
    assert re.fullmatch(r"bricks \d+%, tiles \d+%", first)
    assert re.match(r"Learned bricks from \d+ frames", learned)
    assert last == "The video has ended."


def test_a_broken_video_is_one_line(start: Start, tmp_path: Path) -> None:
    (tmp_path / "broken.mp4").write_bytes(b"no video")
    process = start("--video", "broken.mp4")
    _, err = process.communicate()
    assert process.returncode == 1
    assert re.fullmatch(r"Error: Cannot read broken\.mp4: Invalid data[^\n]*\n", err)
    assert not (tmp_path / "state").exists()


def test_what_the_library_warns_of_is_said(start: Start, demo: Path, tmp_path: Path) -> None:
    with Learner.open(demo, tmp_path / "state") as learner:
        learner.rename(new="mug", slot=0)
    newest = max((tmp_path / "state").glob("state-*.npz"))
    newest.write_bytes(newest.read_bytes()[:100])
    out, err = start(*SYNTHETIC).communicate("quit\n")
    assert err == ""
    assert re.match(rf"[^\n]*{newest.name}[^\n]*; using the generation before it\n", out)


def test_a_raspberry_pi_camera_until_it_is_unplugged(start: Start, tmp_path: Path) -> None:
    np.save(tmp_path / "bricks.npy", picture(0, 0))
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "picamera2.py").write_text(FAKE_PICAMERA2)
    path = os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")])
    process = start("--camera", "picamera2", *QUICK, env={**os.environ, "PYTHONPATH": path})
    assert process.stdin is not None
    process.stdin.write("bricks\n")
    process.stdin.flush()
    wait_for(process, "Learned bricks from ")
    wait_for(process, "bricks 100%")
    (tmp_path / "unplugged").touch()
    out, err = process.communicate()
    assert process.returncode == 1
    assert err == "Error: Cannot read the Raspberry Pi camera: Camera frontend has timed out!\n"
    assert out == "closed\n"
    assert labels(tmp_path / "state") == ["bricks"]


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
    # It may write what it writes, and what stops it is not a failure that restarts it.
    assert Path(options["--state"]).parent == Path("/var/lib") / service["StateDirectory"]
    assert Path(options["--commands"]).parent == Path("/run") / service["RuntimeDirectory"]
    assert (service["KillSignal"], service["SuccessExitStatus"]) == ("SIGTERM", "130")
    assert service["Restart"] == "on-failure"
