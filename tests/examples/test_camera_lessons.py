"""Lessons of the camera loop: typos, answers meanwhile, cancelling, and unknown things."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from camera_process import SYNTHETIC, Start, labels, wait_for
from striped_pictures import picture
from waiting import wait

# A camera that shows the picture in `shown.npy`, and writes how often it has shown it.
SHOWN = """
import os, time
import numpy as np
class Picamera2:
    @staticmethod
    def global_camera_info(): return [{"Model": "imx708", "Num": 0}]
    def __enter__(self): return self
    def __exit__(self, *_): pass
    def create_video_configuration(self, main): return main
    def configure(self, main): pass
    def start(self): self.file, self.count = None, 0
    def capture_array(self):
        time.sleep(0.02)
        with open("shown.npy", "rb") as file:
            same = os.fstat(file.fileno()).st_ino == self.file
            self.file, self.count = os.fstat(file.fileno()).st_ino, same * self.count + 1
            found = np.load(file)
        with open("count.part", "w") as file:
            file.write(f"{self.file} {self.count}")
        os.replace("count.part", "count")
        return found
"""
# Seconds and frames of a lesson that has enough frames on a busy machine too.
ENOUGH = ("--seconds", "1.5", "--fps", "10")
Process = subprocess.Popen[str]
Watch = Callable[..., Process]


@pytest.fixture
def watch(start: Start, tmp_path: Path) -> Watch:
    """Start a loop with a camera that shows what `show` says."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "picamera2.py").write_text(SHOWN)
    path = os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")])

    def started(*words: str) -> Process:
        return start("--camera", "picamera2", *words, env={**os.environ, "PYTHONPATH": path})

    show(tmp_path, picture(0, 0))
    return started


def show(folder: Path, pixels: np.ndarray) -> None:
    np.save(folder / "next.npy", pixels)
    os.replace(folder / "next.npy", folder / "shown.npy")


def wait_until_shown(folder: Path) -> None:
    """Wait until the camera has shown the new picture a few times, so that no older one is left."""

    def is_shown() -> bool:
        with suppress(FileNotFoundError):
            file, count = map(int, (folder / "count").read_text().split())
            return file == (folder / "shown.npy").stat().st_ino and count > 3
        return False

    wait(is_shown, "the camera")


def tell(process: Process, line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def teach_stripes(watch: Watch, folder: Path) -> None:
    process = watch(*ENOUGH)
    for kind, name in enumerate(("bricks", "tiles")):
        show(folder, picture(kind, 0))
        wait_until_shown(folder)
        tell(process, name)
        wait_for(process, f"Learned {name}")
    tell(process, "quit")
    assert process.wait() == 0


def test_mistyped_commands_are_not_taught(start: Start, tmp_path: Path) -> None:
    typed = {
        "forgte x": "forget x",
        "udno": "undo",
        "Undo": "undo",
        "renmae a b c": "rename a b c",
        "qiut": "quit",
        "lern mug": "learn mug",
    }
    known = ("forge", "quilt two", "undo")
    lines = [*typed, *(f"learn {name}" for name in known), "forge", "learn", "quit"]
    out, err = start(*SYNTHETIC).communicate("\n".join(lines) + "\n")
    assert err == ""
    for line, meant in typed.items():
        assert (
            f"Expected a command or a name, got {line!r}; type `{meant}`, or `learn {line}` to "
            "teach a thing of that name\n"
        ) in out
    # A name that looks like a command is taught again without `learn`, once it is known.
    assert re.findall(r"^Learned (.*) from", out, re.M) == [*known, "forge"]
    assert "Expected `learn NAME`, got 'learn'; type it again\n" in out
    assert labels(tmp_path / "state") == list(known)


def test_answers_go_on_during_a_recording_that_is_cancelled(watch: Watch, tmp_path: Path) -> None:
    teach_stripes(watch, tmp_path)
    show(tmp_path, picture(0, 0))
    process = watch("--seconds", "50")
    wait_for(process, "bricks 100%")
    tell(process, "planks")
    show(tmp_path, picture(1, 0))
    wait_for(process, "tiles 100%")
    tell(process, "forget tiles")  # waits for its turn
    show(tmp_path, picture(0, 0))
    wait_for(process, "bricks 100%")
    assert labels(tmp_path / "state") == ["bricks", "tiles"]
    begun = time.monotonic()
    tell(process, "cancel")
    wait_for(process, "Did not learn planks.")
    assert time.monotonic() - begun < 5
    wait_for(process, "Forgot tiles.")
    tell(process, "cancel")
    wait_for(process, "Nothing to cancel: no thing is being learned.")
    tell(process, "quit")
    assert process.wait() == 0
    assert labels(tmp_path / "state") == ["bricks"]


def test_things_never_taught_are_unknown(watch: Watch, start: Start, tmp_path: Path) -> None:
    teach_stripes(watch, tmp_path)
    process = watch("--unknown", "0.05")
    show(tmp_path, np.random.default_rng(0).integers(0, 256, (480, 640, 3)).astype(np.uint8))
    wait_for(process, "unknown ")
    tell(process, "quit")
    assert process.wait() == 0
    _, err = start(*SYNTHETIC, "--unknown", "2").communicate("")
    assert re.fullmatch(r"Error: Expected unknown as a number from 0 to 1[^\n]*\n", err)
