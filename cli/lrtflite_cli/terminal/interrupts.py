"""Ctrl-C and SIGTERM end a command with one line and exit code 130.

By default the process ends inside the signal handler. A KeyboardInterrupt raised while numpy or
TensorFlow is being imported turns into an ImportError with a traceback, or is lost. Code that has
to clean up uses `raising`, which raises KeyboardInterrupt. Code that stops by itself between two
steps uses `asking`, which sets an event.

This module imports little, because the handlers must be in place before any slow import.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import contextmanager

TYPE_CHECKING = False  # importing it from `typing` takes as long as all imports above
if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator
    from types import FrameType
    from typing import Any

EXIT_CODE = 130
MESSAGE = "Interrupted; nothing is left half-written"

# Seconds after a signal in which further signals are ignored. A second Ctrl-C, or a signal that a
# parent process passes on as well, must not cut off the clean-up.
PATIENCE = 1.0
# Seconds until a KeyboardInterrupt that was lost in a destructor or callback is raised again.
AGAIN = 0.01

# Signals that are handled. A background job of a shell ignores Ctrl-C, and keeps ignoring it.
_HEEDED = tuple(
    number
    for number in (signal.SIGINT, signal.SIGTERM)
    if signal.getsignal(number) is not signal.SIG_IGN
)
_came_at: float | None = None


class Interrupted(Exception):
    """Raised when a signal ended the command; the message is its line on stderr."""


def was_interrupted() -> bool:
    """Return whether a signal has come since `leave_at_once` or `forget`."""
    return _came_at is not None


def forget() -> None:
    """Forget a signal that came; the next one counts as the first."""
    global _came_at
    _came_at = None


def leave_at_once() -> None:
    """Make every later signal print the line and end the process."""
    forget()
    try:
        stderr = os.dup(2)  # `quiet_stderr` may point 2 elsewhere when the signal comes
    except OSError:
        stderr = 2

    def leave(number: int, frame: FrameType | None) -> None:
        try:
            os.write(stderr, f"Error: {MESSAGE}\n".encode())
        finally:
            os._exit(EXIT_CODE)

    for number in _HEEDED:
        signal.signal(number, leave)


def ignore() -> None:
    """Ignore signals from now on: the work is done and the interpreter shuts down."""
    for number in _HEEDED:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def raising() -> Iterator[None]:
    """Raise KeyboardInterrupt on a signal, inside the block."""
    with _handling(_raise):
        yield


@contextmanager
def asking(event: threading.Event, *, say: Callable[[], None]) -> Iterator[None]:
    """Set `event` and call `say` on the first signal inside the block; raise on later ones."""

    def ask(number: int, frame: FrameType | None) -> None:
        global _came_at
        if event.is_set():
            _raise(number, frame)
            return
        _came_at = time.monotonic()
        event.set()
        say()

    with _handling(ask):
        yield


def _raise(number: int, frame: FrameType | None) -> None:
    global _came_at
    now = time.monotonic()
    if _came_at is None or now - _came_at >= PATIENCE:
        _came_at = now
        raise KeyboardInterrupt


@contextmanager
def _handling(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    with _losing_none():
        before = {number: signal.signal(number, handler) for number in _HEEDED}
        try:
            yield
        finally:
            for number, previous in before.items():
                signal.signal(number, previous)


@contextmanager
def _losing_none() -> Iterator[None]:
    """Raise lost KeyboardInterrupts again, inside the block.

    Python only reports an exception that is raised in a destructor or in the callback of a weak
    reference.
    """
    report = sys.unraisablehook

    def raise_again(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    def on_unraisable(unraisable: Any) -> None:
        if unraisable.exc_type is KeyboardInterrupt:
            signal.setitimer(signal.ITIMER_REAL, AGAIN)
        else:
            report(unraisable)

    before = signal.signal(signal.SIGALRM, raise_again)
    sys.unraisablehook = on_unraisable
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.unraisablehook = report
        signal.signal(signal.SIGALRM, before)
