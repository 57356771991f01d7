"""Events: what every open page hears, from any thread."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from lrtflite.errors import TooManyClients

MAX_LISTENERS = 32
# Most events that wait for a slow client; later, the oldest ones are lost.
MAX_WAITING = 64
# Events of which only the newest one matters.
LATEST = frozenset({"answer", "classes", "tray", "camera"})

Event = tuple[str, Any]


class Listener:
    """The events that wait for one client; `wake` is called from the thread of the event."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._waiting: deque[Event] = deque(maxlen=MAX_WAITING)
        self._lock = threading.Lock()
        self.is_closed = False

    def put(self, kind: str, data: Any) -> None:
        with self._lock:
            if kind in LATEST:
                kept = [event for event in self._waiting if event[0] != kind]
                self._waiting.clear()
                self._waiting.extend(kept)
            self._waiting.append((kind, data))
        self._wake()

    def take(self) -> list[Event]:
        """Return the events that wait, oldest first, and forget them."""
        with self._lock:
            found = list(self._waiting)
            self._waiting.clear()
        return found

    def close(self) -> None:
        self.is_closed = True
        self._wake()


class Events:
    """Pass each event to every listener."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._lock = threading.Lock()
        self.is_closed = False

    def listen(self, wake: Callable[[], None]) -> Listener:
        """Add a listener; raise TooManyClients for one above the limit."""
        listener = Listener(wake)
        with self._lock:
            if len(self._listeners) >= MAX_LISTENERS:
                raise TooManyClients(
                    f"Expected at most {MAX_LISTENERS} clients, got one more", "close another page"
                )
            self._listeners.append(listener)
        if self.is_closed:
            listener.close()
        return listener

    def leave(self, listener: Listener) -> None:
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)

    @property
    def has_listeners(self) -> bool:
        return bool(self._listeners)

    def publish(self, kind: str, data: Any) -> None:
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            listener.put(kind, data)

    def close(self) -> None:
        """End every listener, and later ones at once."""
        self.is_closed = True
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            listener.close()
