"""Connect a running service with a broker."""

from __future__ import annotations

from typing import Any

from lrtflite import __version__
from lrtflite.labels import Label
from lrtflite_serve.mqtt.broker import Broker
from lrtflite_serve.mqtt.discovery import Device
from lrtflite_serve.mqtt.identity import kept_identity
from lrtflite_serve.mqtt.link import Link, Say
from lrtflite_serve.service import changes
from lrtflite_serve.service.service import Service

# Suffix of the file beside the state that has the name of this device at a broker.
IDENTITY = "mqtt"


class ServiceHome:
    """A service as home automation uses it."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.events, self.camera = service.events, service.camera

    def classes(self) -> dict[str, Any]:
        return self._service.classes()

    def teach(
        self, label: Label | None, slot: int | None, *, seconds: float | None, fps: float | None
    ) -> object:
        return self._service.teach(label, slot, seconds=seconds, fps=fps)

    def undo(self) -> dict[str, Any]:
        return changes.undo(self._service)


def linked(service: Service, broker: Broker, *, url: str | None, say: Say) -> Link:
    """Return a link that has started; raise InputError if the broker refuses the user."""
    settings, manifest = service.settings, service.learner.bundle.manifest
    device = Device(
        name=settings.options.device or f"lrtflite {settings.state.absolute().name}",
        model=f"{manifest.network}, {manifest.strategy}",
        version=__version__,
        url=url,
    )
    identity = kept_identity(settings.beside(IDENTITY))
    link = Link(ServiceHome(service), broker, identity, device, say=say)
    link.start()
    return link
