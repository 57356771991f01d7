"""Describe a device to Home Assistant, by its MQTT discovery.

Each entity has a retained message at `PREFIX/COMPONENT/OBJECT/config`; an empty one removes it.
https://www.home-assistant.io/integrations/mqtt/#mqtt-discovery has the fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Optional

from lrtflite.labels import MAX_CHARACTERS
from lrtflite_serve.mqtt.topics import OFFLINE, ONLINE, PRESS, Topics

SUPPORT = "https://github.com/lrtflite/lrtflite"
Message = tuple[str, Optional[dict[str, Any]]]
"""A topic, and the description of an entity; None removes it."""


@dataclass(frozen=True)
class Device:
    """Facts that Home Assistant shows; `url` is the address of the page, where others reach it."""

    name: str
    model: str
    version: str
    url: str | None = None


@dataclass(frozen=True)
class Discovery:
    """The messages that describe a device; with `has_camera` it can be taught and gives answers."""

    topics: Topics
    device: Device
    has_camera: bool
    prefix: str = "homeassistant"

    def messages(self) -> Iterator[Message]:
        """Yield the topic and the description of each entity that does not depend on classes.

        Entities that need a camera are removed without one.
        """
        topics = self.topics
        yield self._entity(
            "sensor",
            "lesson",
            "Lesson",
            state_topic=topics.lesson,
            value_template="{{ value_json.state }}",
            json_attributes_topic=topics.lesson,
            entity_category="diagnostic",
            icon="mdi:school",
        )
        yield self._button("undo", "Undo", topics.undo, icon="mdi:undo")
        for topic, found in self._of_camera():
            yield topic, found if self.has_camera else None

    def _of_camera(self) -> Iterator[tuple[str, dict[str, Any]]]:
        topics = self.topics
        yield self._entity(
            "sensor",
            "answer",
            "Answer",
            state_topic=topics.answer,
            value_template="{{ value_json.state }}",
            json_attributes_topic=topics.answer,
            icon="mdi:eye",
        )
        yield self._entity(
            "image", "picture", "Camera", image_topic=topics.picture, content_type="image/jpeg"
        )
        yield self._entity(
            "text",
            "name",
            "Name to teach",
            command_topic=topics.set_name,
            state_topic=topics.name,
            max=MAX_CHARACTERS,
            mode="text",
            icon="mdi:rename",
        )
        yield self._button("teach", "Teach", topics.teach, icon="mdi:school")

    def class_buttons(self, labels: Mapping[int, str], before: Iterable[int]) -> Iterator[Message]:
        """Yield the buttons that teach more of each class, and the removal of those `before`."""
        wanted = labels if self.has_camera else {}
        for slot in sorted({*wanted, *before}):
            topic, found = self._button(
                f"teach_{slot}",
                f"Teach {wanted.get(slot)}",
                self.topics.teach_class(slot),
                icon="mdi:school",
            )
            yield topic, found if slot in wanted else None

    def _button(
        self, name: str, title: str, topic: str, *, icon: str
    ) -> tuple[str, dict[str, Any]]:
        return self._entity(
            "button", name, title, command_topic=topic, payload_press=PRESS, icon=icon
        )

    def _entity(
        self, component: str, name: str, title: str, **fields: Any
    ) -> tuple[str, dict[str, Any]]:
        unique = f"{self.topics.identity}_{name}"
        device: dict[str, Any] = {
            "identifiers": [self.topics.identity],
            "name": self.device.name,
            "manufacturer": "lrtflite",
            "model": self.device.model,
            "sw_version": self.device.version,
        }
        if self.device.url is not None:
            device["configuration_url"] = self.device.url
        return f"{self.prefix}/{component}/{unique}/config", {
            "name": title,
            "unique_id": unique,
            "availability_topic": self.topics.status,
            "payload_available": ONLINE,
            "payload_not_available": OFFLINE,
            "device": device,
            "origin": {
                "name": "lrtflite",
                "sw_version": self.device.version,
                "support_url": SUPPORT,
            },
            **fields,
        }
