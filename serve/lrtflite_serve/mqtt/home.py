"""The part of a service that home automation uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from lrtflite.labels import Label
from lrtflite_serve.service.events import Listener


class Announcements(Protocol):
    """Events of a service; see `lrtflite_serve.service.events.Events`."""

    def listen(self, wake: Callable[[], None]) -> Listener: ...

    def leave(self, listener: Listener) -> None: ...


class Camera(Protocol):
    """The device's camera."""

    @property
    def number(self) -> int: ...

    def shown(self) -> tuple[int, bytes]:
        """Return the number of the newest picture, and a JPEG; raise CameraError without one."""
        ...


class Home(Protocol):
    """A learner that home automation listens to and teaches."""

    @property
    def events(self) -> Announcements: ...

    @property
    def camera(self) -> Camera | None: ...

    def classes(self) -> dict[str, Any]:
        """Return the classes with their slots and labels."""
        ...

    def teach(
        self, label: Label | None, slot: int | None, *, seconds: float | None, fps: float | None
    ) -> object:
        """Begin a lesson from the device's camera; raise LrtfliteError if that cannot be."""
        ...

    def undo(self) -> dict[str, Any]:
        """Take the last change back; raise LrtfliteError if that cannot be."""
        ...
