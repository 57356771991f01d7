"""A service at a real broker: discovery, answers, teaching, undo, lost brokers, attacks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("paho")

from lrtflite import Learner
from lrtflite.errors import InputError
from lrtflite_serve.mqtt.broker import Broker
from lrtflite_serve.mqtt.link import Link
from lrtflite_serve.mqtt.start import linked
from lrtflite_serve.mqtt.topics import PRESS
from lrtflite_serve.service.device import DeviceCamera
from lrtflite_serve.service.service import Service
from lrtflite_serve.settings import Settings
from mosquitto import Ear, Mosquitto, wait

HOSTILE = "{{ states('x') }}/#+ \u202e<b>"
Open = Callable[..., Service]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    made = Mosquitto(tmp_path)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def ear(broker: Mosquitto) -> Iterator[Ear]:
    made = Ear(broker.port)
    yield made
    made.close()


@pytest.fixture
def opened(demo: Path, tmp_path: Path) -> Iterator[Open]:
    """`opened(camera="synthetic")` returns a service whose lessons last half a second."""
    services: list[Service] = []

    def make(camera: str | None = "synthetic") -> Service:
        settings = Settings(bundle=demo, state=tmp_path / "state", seconds=0.5, fps=20.0)
        device = None if camera is None else DeviceCamera(camera)
        learner = Learner.open(demo, settings.state, replay_size=100)
        services.append(Service(learner, settings, device))
        return services[-1]

    yield make
    for service in services:
        service.close()
        if service.camera is not None:
            service.camera.close()
        service.learner.close()


def start(service: Service, broker: Mosquitto, lines: list[str] | None = None) -> Link:
    log = [] if lines is None else lines
    where = Broker("127.0.0.1", broker.port)
    return linked(service, where, url=None, say=log.append)


@pytest.fixture
def link(opened: Open, broker: Mosquitto) -> Iterator[Link]:
    made = start(opened(), broker)
    yield made
    made.close()


def described(ear: Ear) -> dict[str, dict[str, Any]]:
    found = ear.retained().items()
    return {t: json.loads(text) for t, text in found if t.startswith("homeassistant/")}


def sessions(ear: Ear, link: Link) -> int:
    found: int = json.loads(ear.last(link.topics.classes) or b"{}").get("sessions", -1)
    return found


def test_a_class_is_taught_from_its_name_and_recognised_and_undone(link: Link, ear: Ear) -> None:
    topics = link.topics
    ear.wait_json(topics.lesson, state="idle")
    assert wait(lambda: ear.last(topics.status)) == b"online"
    ear.wait_json(topics.answer, state="nothing learned")
    assert wait(lambda: (ear.last(topics.picture) or b"").startswith(b"\xff\xd8\xff"))
    ear.say(topics.set_name, "red mug")
    wait(lambda: ear.last(topics.name) == b"red mug")
    ear.say(topics.teach, PRESS)
    ear.wait_json(topics.lesson, state="recording", label="red mug")
    learned = ear.wait_json(topics.lesson, state="learned", label="red mug")
    assert learned["frames"] >= 3
    assert "report" not in learned
    answer = ear.wait_json(topics.answer, state="red mug", kind="answer", slot=0)
    assert 0 < answer["share"] <= 1
    button = f"homeassistant/button/{topics.identity}_teach_0/config"
    assert described(ear)[button]["name"] == "Teach red mug"
    [taught] = json.loads(ear.last(topics.classes) or b"")["classes"]
    assert (taught["label"], taught["slot"]) == ("red mug", 0)

    ear.say(topics.teach_class(0), PRESS)
    wait(lambda: sessions(ear, link) == 2)
    ear.wait_json(topics.lesson, state="learned")
    ear.say(topics.undo, PRESS)
    wait(lambda: sessions(ear, link) == 1)


def test_undo_removes_the_class_and_its_button(link: Link, ear: Ear) -> None:
    topics = link.topics
    button = f"homeassistant/button/{topics.identity}_teach_0/config"
    ear.say(topics.set_name, "mug")
    ear.say(topics.teach, PRESS)
    wait(lambda: ear.last(button))
    ear.wait_json(topics.lesson, state="learned")
    ear.say(topics.undo, PRESS)
    wait(lambda: ear.last(button) == b"")
    wait(lambda: json.loads(ear.last(topics.classes) or b"")["classes"] == [])
    ear.say(topics.undo, PRESS)
    assert "undo" in ear.wait_json(topics.lesson, state="refused")["error"].lower()


def test_commands_that_cannot_be_are_answered(link: Link, ear: Ear) -> None:
    topics = link.topics
    for topic, payload, expected in (
        (topics.teach, PRESS, "Expected a name to teach, got none; enter it first"),
        (topics.set_name, "unknown", "other than 'unknown'"),
        (topics.set_name, b"\xff\xfe", "Expected a name in UTF-8"),
        (topics.set_name, "x" * 5000, "at most 200 characters, got 5,000 bytes"),
        (topics.teach_class(40), PRESS, "Expected the slot of a class, got 40"),
    ):
        before = len(ear.heard)
        ear.say(topic, payload)

        def told(before: int = before, expected: str = expected) -> bool:
            new = [text for name, text in ear.heard[before:] if name == topics.lesson]
            return any(expected in str(json.loads(text).get("error")) for text in new)

        wait(told, expected)
    ear.say(topics.set_name, "mug")
    wait(lambda: ear.last(topics.name) == b"mug")
    for topic in (topics.teach, topics.teach_class("0/../1"), topics.undo):
        ear.say(topic, "press it")
        ear.say(topic, b"")
    ear.say(topics.set_name, "")
    wait(lambda: ear.last(topics.name) == b"")
    assert sessions(ear, link) == 0


def test_a_hostile_name_is_a_value_and_never_a_topic(link: Link, ear: Ear) -> None:
    topics = link.topics
    visible = HOSTILE.replace("\u202e", "")
    ear.say(topics.set_name, HOSTILE)
    assert "one line of text" in ear.wait_json(topics.lesson, state="refused")["error"]
    ear.say(topics.set_name, visible)
    wait(lambda: ear.last(topics.name) == visible.encode())
    ear.say(topics.teach, PRESS)
    ear.wait_json(topics.answer, state=visible)
    assert described(ear)[f"homeassistant/button/{topics.identity}_teach_0/config"]["name"] == (
        f"Teach {visible}"
    )
    for topic, _ in ear.heard:
        assert "states" not in topic
        assert topic.isascii()


def test_commands_that_the_broker_kept_are_not_of_now(
    opened: Open, broker: Mosquitto, ear: Ear
) -> None:
    service = opened()
    made = start(service, broker)
    topics = made.topics
    made.close()
    ear.say(topics.set_name, "mug", retain=True)
    ear.say(topics.teach, PRESS, retain=True)
    again = start(service, broker)
    assert again.topics == topics, "the identity is kept beside the state"
    ear.say(topics.undo, PRESS)
    error = ear.wait_json(topics.lesson, state="refused")["error"]
    assert "name to teach" not in error
    assert service.lessons.current is None
    again.close()


def test_a_device_says_goodbye_and_the_broker_does_it_for_a_lost_one(
    opened: Open, broker: Mosquitto, ear: Ear
) -> None:
    made = start(opened(), broker)
    wait(lambda: ear.last(made.topics.status) == b"online")
    made.close()
    wait(lambda: ear.last(made.topics.status) == b"offline")


def test_a_broker_that_is_restarted_hears_everything_again(opened: Open, broker: Mosquitto) -> None:
    lines: list[str] = []
    service = opened()
    made = start(service, broker, lines)
    broker.stop()
    wait(lambda: lines, "a line about the lost broker")
    assert lines == [f"Lost the broker 127.0.0.1:{broker.port}; trying again"]
    # The learner goes on meanwhile.
    service.learner.learn([np.full((128, 128, 3), 40, np.uint8)] * 3, "mug")
    service.tell_classes()
    broker.start()
    ear = Ear(broker.port)
    wait(lambda: ear.last(made.topics.status) == b"online")
    assert described(ear)[f"homeassistant/button/{made.topics.identity}_teach_0/config"]
    wait(lambda: len(lines) == 2)
    assert lines[1] == f"Connected to the broker 127.0.0.1:{broker.port} again"
    made.close()
    ear.close()


def test_a_service_starts_without_its_broker(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lrtflite_serve.mqtt.link.PATIENCE", 0.3)
    broker, lines = Mosquitto(tmp_path), list[str]()
    made = start(opened(), broker, lines)
    assert lines == [f"Expected a broker at 127.0.0.1:{broker.port}, got no answer; trying again"]
    broker.start()
    ear = Ear(broker.port)
    wait(lambda: ear.last(made.topics.status) == b"online")
    made.close()
    ear.close()
    broker.stop()


def test_a_wrong_password_ends_the_start_in_one_line(opened: Open, tmp_path: Path) -> None:
    guarded = Mosquitto(tmp_path, kitchen="right")
    guarded.start()
    service = opened()
    where = Broker("127.0.0.1", guarded.port, "kitchen", "wrong")
    with pytest.raises(InputError, match="got Not authorized; check --mqtt-user and its password"):
        linked(service, where, url=None, say=print)
    assert not service.events.has_listeners
    ear = Ear(guarded.port, user="kitchen", password="right")
    made = linked(
        service, Broker("127.0.0.1", guarded.port, "kitchen", "right"), url=None, say=print
    )
    wait(lambda: ear.last(made.topics.status) == b"online")
    made.close()
    ear.close()
    guarded.stop()


def test_without_a_camera(opened: Open, broker: Mosquitto, ear: Ear) -> None:
    made = start(opened(camera=None), broker)
    wait(lambda: ear.last(made.topics.status) == b"online")
    assert {topic.split("/")[1] for topic in described(ear)} == {"sensor", "button"}
    assert len(described(ear)) == 2
    made.close()
