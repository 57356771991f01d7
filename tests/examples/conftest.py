"""Fixtures for the tests that run the examples."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from camera_process import ROOT, Start


@pytest.fixture
def start(demo: Path, tmp_path: Path) -> Iterator[Start]:
    """Start the camera loop in the test's temporary folder, where it keeps its state."""
    started = []

    def loop(*words: str, **options: Any) -> subprocess.Popen[str]:
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        command = [sys.executable, str(ROOT / "examples" / "camera_loop.py"), str(demo), *words]
        options = {**pipes, "cwd": tmp_path, "text": True, **options}
        process: subprocess.Popen[str] = subprocess.Popen(command, **options)
        # Without the timer, a test would wait forever for a line that never comes.
        started.append((process, threading.Timer(60, process.kill)))
        started[-1][1].start()
        return process

    yield loop
    for process, timer in started:
        timer.cancel()
        with process:
            process.kill()
