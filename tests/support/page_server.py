"""`lrtflite serve` in a process of its own, to be stopped, killed and started again."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

PATIENCE = 60.0  # seconds


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Served:
    """A server with its state; the same port after a restart."""

    def __init__(self, bundle: Path, folder: Path, *words: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/"
        self.log = folder / "serve.log"
        self._command = [sys.executable, "-m", "lrtflite_cli.main", "serve", str(bundle)]
        self._command += ["--state", str(folder / "state"), "--port", str(self.port), *words]
        self.start()

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if self._process.poll() is not None:
                break
            try:
                urllib.request.urlopen(f"{self.url}icon.svg", timeout=5).close()
                return
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        raise AssertionError(f"no answer at {self.url}: {self.log.read_text()}")

    def kill(self) -> None:
        """End the process as a power cut would."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()

    def ask(self, method: str, path: str, value: object = None) -> Any:
        """Send a request as a program would, without a browser."""
        request = urllib.request.Request(
            f"{self.url}api{path}",
            None if value is None else json.dumps(value).encode(),
            {"Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or b"null")

    @property
    def labels(self) -> list[str]:
        return [entry["label"] for entry in self.ask("GET", "/classes")["classes"]]

    def token(self) -> str:
        """Return the token that was printed."""
        found = re.search(r"#token=([\w-]+)", self.log.read_text())
        assert found, self.log.read_text()
        return found.group(1)
