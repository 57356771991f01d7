"""Signals in code that cleans up after itself: raised once, never lost."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from lrtflite_cli.terminal import interrupts
from lrtflite_cli.terminal.interrupts import asking, raising

SIGNALS = [signal.SIGINT, signal.SIGTERM]


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    interrupts.forget()
    yield
    interrupts.forget()


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_raises(number: signal.Signals) -> None:
    hook = sys.unraisablehook
    before = [signal.getsignal(each) for each in (*SIGNALS, signal.SIGALRM)]
    with pytest.raises(KeyboardInterrupt), raising():
        signal.raise_signal(number)
    assert interrupts.was_interrupted()
    assert [signal.getsignal(each) for each in (*SIGNALS, signal.SIGALRM)] == before
    assert sys.unraisablehook is hook


def test_pressed_twice_it_raises_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cleaned = []

    def work() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            signal.raise_signal(signal.SIGINT)
            cleaned.append("whole")
            monkeypatch.setattr(interrupts, "PATIENCE", 0.0)
            signal.raise_signal(signal.SIGINT)
            cleaned.append("never")

    with raising(), pytest.raises(KeyboardInterrupt):
        work()
    assert cleaned == ["whole"]


def test_one_that_is_lost_in_a_destructor_is_raised_again() -> None:
    class Stubborn:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)
            lost.append(False)

    lost: list[bool] = []

    def work() -> None:
        Stubborn()
        lost.append(True)
        time.sleep(10)

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt), raising():
        work()
    assert lost == [True]
    assert time.monotonic() - started < 5


def test_the_first_asks_and_the_second_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "PATIENCE", 0.0)
    event, said = threading.Event(), []
    with asking(event, say=lambda: said.append("stopping")):
        signal.raise_signal(signal.SIGTERM)
        assert event.is_set()
        assert interrupts.was_interrupted()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    assert said == ["stopping"]


@pytest.mark.parametrize("ignored", [True, False])
def test_a_background_job_ignores_ctrl_c(ignored: bool) -> None:
    code = (
        "import signal, sys\n"
        f"if {ignored}: signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "from lrtflite_cli.terminal import interrupts\n"
        "interrupts.leave_at_once()\n"
        "signal.raise_signal(signal.SIGINT)\n"
        "print('went on')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == ((0, "went on\n") if ignored else (130, ""))


def test_nothing_slow_comes_before_the_handlers() -> None:
    # -I -S start a bare interpreter, which imports nothing by itself.
    code = f"import sys; sys.path[:] = {sys.path!r}; import lrtflite_cli.main; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    slow = {"click", "numpy", "lrtflite", "typing", "re", "tempfile", "threading"}
    assert not slow & set(done.stdout.split())
