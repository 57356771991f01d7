"""Discovery payloads against the fields that Home Assistant documents for each component."""

from __future__ import annotations

import re
from typing import Any

import pytest

from lrtflite_serve.mqtt.discovery import Device, Discovery
from lrtflite_serve.mqtt.topics import Topics

TOPICS = Topics("lrtflite", "lrtflite_0123abcd")
DEVICE = Device("kitchen", "mobilenet_v1, lda", "1.0", "http://192.0.2.1:8765/")
# Fields of the integrations' pages: those that a component requires, and those that it may have.
COMMON = {
    "name", "unique_id", "availability_topic", "payload_available", "payload_not_available",
    "device", "origin", "icon", "entity_category", "json_attributes_topic",
}  # fmt: skip
REQUIRED = {
    "sensor": {"state_topic"},
    "button": {"command_topic"},
    "text": {"command_topic"},
    "image": {"image_topic"},
}
OPTIONAL = {
    "sensor": {"value_template"},
    "button": {"payload_press"},
    "text": {"state_topic", "max", "mode"},
    "image": {"content_type"},
}
OF_DEVICE = {"identifiers", "name", "manufacturer", "model", "sw_version", "configuration_url"}
TOPIC = re.compile(r"homeassistant/(\w+)/([a-zA-Z0-9_-]+)/config")


def every(*, has_camera: bool = True, labels: dict[int, str] | None = None) -> dict[str, Any]:
    discovery = Discovery(TOPICS, DEVICE, has_camera)
    return dict([*discovery.messages(), *discovery.class_buttons(labels or {}, ())])


def test_entities_are_those_that_home_assistant_takes() -> None:
    found = every(labels={3: "mug", 0: "{{ hostile }}/#+\u202eold"})
    unique = [payload["unique_id"] for payload in found.values()]
    assert len(unique) == len(set(unique)) == 8
    for topic, payload in found.items():
        match = TOPIC.fullmatch(topic)
        assert match is not None
        component, item = match.groups()
        assert payload["unique_id"] == item
        assert REQUIRED[component] <= payload.keys()
        assert payload.keys() <= COMMON | REQUIRED[component] | OPTIONAL[component]
        assert payload["device"].keys() <= OF_DEVICE
        assert payload["device"]["identifiers"] == [TOPICS.identity]
        assert payload["origin"].keys() == {"name", "sw_version", "support_url"}
        assert payload["availability_topic"] == "lrtflite/lrtflite_0123abcd/status"
        for name, value in payload.items():
            if name.endswith("_topic"):
                assert re.fullmatch(r"[\w/]+", value, re.ASCII), "a name got into a topic"


def test_a_text_is_as_long_as_home_assistant_allows() -> None:
    text = every()[f"homeassistant/text/{TOPICS.identity}_name/config"]
    assert 0 < text["max"] <= 255
    assert text["mode"] == "text"


def test_buttons_of_classes_come_and_go() -> None:
    discovery = Discovery(TOPICS, DEVICE, has_camera=True)
    found = dict(discovery.class_buttons({1: "mug"}, [0, 1]))
    gone, mug = (f"homeassistant/button/{TOPICS.identity}_teach_{slot}/config" for slot in (0, 1))
    assert found[gone] is None
    assert found[mug] is not None
    assert found[mug]["name"] == "Teach mug"
    assert found[mug]["command_topic"] == TOPICS.teach_class(1)


def test_without_a_camera_nothing_is_offered_that_needs_one() -> None:
    found = every(has_camera=False, labels={0: "mug"})
    offered = {topic.split("/")[2].split("_", 2)[2] for topic, text in found.items() if text}
    assert offered == {"lesson", "undo"}


@pytest.mark.parametrize(
    ("topic", "slot"),
    [("classes/7/teach", 7), ("classes/x/teach", None), ("classes/-1/teach", None),
     ("classes/\u0663/teach", None), ("classes/123456/teach", None), ("teach", None),
     ("classes//teach", None)],
)  # fmt: skip
def test_slots_in_topics(topic: str, slot: int | None) -> None:
    assert TOPICS.slot_of(f"lrtflite/lrtflite_0123abcd/{topic}") == slot
    assert TOPICS.slot_of(f"lrtflite/another/{topic}") is None
