"""The screen and the keyboard of camera_loop.py: a terminal, or a log and a FIFO."""

from __future__ import annotations

import logging
import os
import select
import shutil
import stat
import sys
import threading
import time
from collections import deque
from pathlib import Path

from lrtflite import InputError

# Least seconds between two answers in a log.
LOG_EVERY = 1.0
# Longest command line in bytes, longer than any label.
LONGEST_LINE = 4096
# Terminal codes: go to the line above, erase to the end of the screen.
ABOVE = "\r\033[A\033[J"


class Screen:
    """Print on the last two lines of a terminal, answers above the input line, or to a log.

    Several threads may print.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.is_terminal = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
        self._is_drawn = False
        self._shown = ""
        self._winner: str | None = None
        self._logged = -LOG_EVERY

    def prompt(self) -> None:
        """Draw the answer line and the input line, from the start of a line."""
        if self.is_terminal:
            with self._lock:
                self._is_drawn = True
                print(f"{self._shown}\n> ", end="", flush=True)

    def say(self, text: str) -> None:
        """Print a line that is not overwritten."""
        with self._lock:
            print(f"{ABOVE if self._is_drawn else ''}{text}", flush=True)
            if self._is_drawn:
                self.prompt()

    def show(self, text: str) -> None:
        """Overwrite the line above the input line."""
        text = text[: shutil.get_terminal_size().columns - 1]
        with self._lock:
            if self.is_terminal and text != self._shown:
                self._shown = text
                print(f"\0337\033[A\r\033[K{text}\0338", end="", flush=True)

    def answer(self, text: str, winner: str | None, status: str = "") -> None:
        """Show an answer after a status; in a log, print it alone, and only a new winner.

        Without a winner, a log stays as it is.
        """
        self.show(f"{status} | {text}" if status else text)
        now, is_new = time.monotonic(), winner not in (None, self._winner)
        if not self.is_terminal and is_new and now - self._logged >= LOG_EVERY:
            self._winner, self._logged = winner, now
            print(text, flush=True)

    def close(self) -> None:
        """Remove the two lines."""
        if self._is_drawn:
            print(ABOVE, end="", flush=True)


class Notes(logging.Handler):
    """Print log messages of the library, such as advice on teaching, on the screen."""

    def __init__(self, screen: Screen) -> None:
        super().__init__()
        self._screen = screen

    def emit(self, record: logging.LogRecord) -> None:
        self._screen.say(record.getMessage())


class Lines:
    """Read lines from the keyboard and from a FIFO."""

    def __init__(self, fifo: Path | None) -> None:
        self._waiting: deque[str] = deque()
        self._begun = {} if sys.stdin is None else {sys.stdin.fileno(): b""}
        if fifo is not None:
            if not fifo.exists():
                os.mkfifo(fifo, 0o660)
            if not stat.S_ISFIFO(fifo.stat().st_mode):
                raise InputError(f"Expected a FIFO for commands, got the file {fifo}", "remove it")
            # Also open for writing, or the FIFO would end when its first writer closes it.
            self._begun[os.open(fifo, os.O_RDWR | os.O_NONBLOCK)] = b""

    def next(self, wait: float) -> str | None:
        """Return the next line, or None after `wait` seconds without one."""
        if not self._waiting:
            for source in select.select(list(self._begun), [], [], max(0.0, wait))[0]:
                self._read(source)
        return self._waiting.popleft() if self._waiting else None

    def _read(self, source: int) -> None:
        data = os.read(source, LONGEST_LINE)
        *lines, rest = (self._begun[source] + data).split(b"\n")
        if len(rest) >= LONGEST_LINE or not data:
            lines, rest = [*lines, rest], b""
        self._begun[source] = rest
        self._waiting.extend(" ".join(line.decode(errors="replace").split()) for line in lines)
        if not data:
            del self._begun[source]  # a file at its end is always ready, so stop polling it
            if os.isatty(source):
                self._waiting.append("quit")  # Ctrl-D
