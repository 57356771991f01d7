"""The command `lrtflite serve` in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

COMMAND = [sys.executable, "-m", "lrtflite_cli.main", "serve"]


@contextmanager
def started(folder: Path, *words: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the command; yield its process and the address that it prints."""
    child = subprocess.Popen(
        [*COMMAND, *map(str, words), "--port", "0"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        line = child.stdout.readline()
        assert line.startswith("Open http"), child.communicate(timeout=60)
        yield child, line.removeprefix("Open ").strip()
    finally:
        child.kill()
        child.communicate()
