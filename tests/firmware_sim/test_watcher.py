"""Progress: bars on a terminal, lines elsewhere."""

from __future__ import annotations

import io
import sys
from dataclasses import replace

import pytest

from lrtflite.errors import MissingExtra
from lrtflite.progress import Progress
from lrtflite_firmware_sim import Simulation
from lrtflite_firmware_sim.watcher import LineWatcher, LiveWatcher, Watcher, watch


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def play(watcher: Watcher, simulated: Simulation) -> None:
    watcher.note("[bold] is a name")
    with watcher.running(7):
        for frame in range(16):
            watcher.testing(Progress("read", frame + 1, 16))
        for session in simulated.per_session:
            watcher.learning(session.classes)
            watcher.step(Progress("extract", 1, session.frames))
            watcher.step(Progress("train", 1, session.steps))
            watcher.learned(session)


def test_lines_where_there_is_no_terminal(simulated: Simulation) -> None:
    stream = io.StringIO()
    watcher = watch(stream)
    assert isinstance(watcher, LineWatcher)
    play(watcher, simulated)
    lines = stream.getvalue().splitlines()
    assert lines[:2] == ["note: [bold] is a name", "reading 16 test frames"]
    assert len(lines) == 2 + 7
    assert lines[2].startswith("session 1/7: 2 classes (new), 8 frames, accuracy ")


def test_bars_on_a_terminal(simulated: Simulation) -> None:
    stream = Terminal()
    watcher = watch(stream)
    assert isinstance(watcher, LiveWatcher)
    play(watcher, simulated)
    assert "note: [bold] is a name" in stream.getvalue()
    assert "sessions" in stream.getvalue()


def looked(stream: io.StringIO) -> str:
    """Return the output during a check of 5,000 files."""
    with watch(stream).looking() as on_progress:
        for number in range(5000):
            on_progress(Progress("check", number + 1, 5000))
    return stream.getvalue()


def test_a_long_look_at_files_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looked(io.StringIO()) == ""
    assert looked(Terminal()) == ""
    monkeypatch.setattr("lrtflite_firmware_sim.watcher.LONG", 0.0)
    assert looked(io.StringIO()) == "checking 5000 files\n"
    assert "files" in looked(Terminal())


def test_bars_need_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[device\]'"):
        watch(Terminal())
    watch(io.StringIO())


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_names_have_no_control_characters_or_markup(
    stream: type[io.StringIO], simulated: Simulation
) -> None:
    odd = "\x9b1m\u202e\x07[red]x"
    sessions = tuple(
        replace(each, classes=(odd * 30,), new_classes=()) for each in simulated.per_session
    )
    terminal = stream()
    watcher = watch(terminal)
    watcher.note(odd)
    play(watcher, replace(simulated, per_session=sessions))
    assert not set(terminal.getvalue()) & set("\x9b\u202e\x07")
    assert "note: \\x9b1m\\u202e\\x07[red]x" in terminal.getvalue()
