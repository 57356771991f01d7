"""The camera loop at a terminal: its two lines at the bottom, and the keys that end it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import termios
from pathlib import Path

import pytest

from camera_process import SYNTHETIC, Start, labels


class Terminal:
    """The user's end of a pseudo-terminal."""

    def __init__(self) -> None:
        self._end, self.process_end = pty.openpty()
        self._seen = ""

    def read_until(self, wanted: str) -> str:
        """Return the text since the last call, up to and including `wanted`."""
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
        ("\x03", 130, "Interrupted; finished sessions are kept\n"),  # Ctrl-C
        ("\x04", 0, ""),  # Ctrl-D
        ("quit\n", 0, ""),
    ],
)
def test_teaching_at_a_terminal(
    start: Start, tmp_path: Path, keys: str, code: int, err: str
) -> None:
    terminal = Terminal()
    process = start(
        *SYNTHETIC,
        stdin=terminal.process_end,
        stdout=terminal.process_end,
        start_new_session=True,
        # Ctrl-C reaches only processes with this controlling terminal.
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(terminal.process_end)
    first = terminal.read_until("nothing learned yet")
    assert first.startswith("Show a thing to the camera, type its name and press Enter.\r\n")
    for command in ("NAME", "undo", "rename OLD NEW", "forget NAME", "help", "quit"):
        assert re.search(rf"^{command}  ", first, re.M)
    assert "It knows nothing yet." in first
    terminal.type("mug\n")
    assert "looking at mug, 0 of 0.4 s" in terminal.read_until("Learned mug from ")
    # The answer is on the line above the input line.
    terminal.read_until("\0337\033[A\r\033[Kmug (mug 100%)\0338")
    terminal.type(keys)
    said = process.communicate()[1]
    assert (process.returncode, said) == (code, err)
    terminal.close()
    assert labels(tmp_path / "state") == ["mug"]
