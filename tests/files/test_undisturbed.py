"""Ctrl-C waits until a block has ended."""

from __future__ import annotations

import signal
import threading

import pytest

from lrtflite.files.deferred_signals import deferred_signals


def test_a_signal_is_handled_after_the_block() -> None:
    steps = []

    def work() -> None:
        with deferred_signals():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            steps.append("whole")

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        work()
    assert steps == ["whole"]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_signal_is_not_lost_when_the_block_fails() -> None:
    def work() -> None:
        with deferred_signals():
            signal.raise_signal(signal.SIGINT)
            raise ZeroDivisionError

    with pytest.raises(KeyboardInterrupt) as caught:
        work()
    assert isinstance(caught.value.__context__, ZeroDivisionError)


def test_blocks_may_be_nested() -> None:
    steps = []

    def work() -> None:
        with deferred_signals():
            with deferred_signals():
                signal.raise_signal(signal.SIGINT)
            steps.append("outer")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert steps == ["outer"]


def test_what_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with deferred_signals():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_may_use_it() -> None:
    ran = []

    def work() -> None:
        with deferred_signals():
            ran.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert ran == [True]
