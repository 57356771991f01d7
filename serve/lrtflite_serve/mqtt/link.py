"""Connect a service with a broker: tell its events, and take commands.

The connection has threads of its own. A broker that is slow, wrong or gone never holds up a
learner: messages that cannot be sent are dropped, and the newest ones follow after the next
connection.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from lrtflite.errors import CameraError, InputError, TooManyClients
from lrtflite.system.extras import require
from lrtflite_serve.mqtt.answers import IDLE, Answers, lesson_message, problem_message
from lrtflite_serve.mqtt.broker import Broker
from lrtflite_serve.mqtt.commands import Commands
from lrtflite_serve.mqtt.discovery import Device, Discovery
from lrtflite_serve.mqtt.home import Home
from lrtflite_serve.mqtt.topics import OFFLINE, ONLINE, Topics

# Seconds between two attempts to connect, doubled each time up to the second.
FIRST_PAUSE, LAST_PAUSE = 1, 60
# Seconds for the first connection, after which the service starts without it.
PATIENCE = 5.0
# Seconds between two pictures of the camera, and between two looks for one.
PICTURE_PAUSE, LOOK = 5.0, 0.5
KEEP_ALIVE = 30
# Reasons of MQTT 3.1.1 and 5 for a connection that will be refused again.
REFUSALS = ("Bad user name or password", "Not authorized", "Banned", "Bad authentication method")

Say = Callable[[str], None]


class Link:
    """A service at a broker, from `start` to `close`; `say` gets a line for the log."""

    def __init__(
        self,
        home: Home,
        broker: Broker,
        identity: str,
        device: Device,
        *,
        say: Say = lambda line: None,
    ) -> None:
        require("paho")
        self._home, self._broker, self._say = home, broker, say
        self.topics = Topics(broker.prefix, identity)
        has_camera = home.camera is not None
        self._discovery = Discovery(self.topics, device, has_camera, broker.discovery)
        self._answers, self._lesson = Answers(), IDLE
        # Slots with a button, which a later message may have to remove; None before the first one.
        self._buttons: list[int] | None = None
        self._wake, self._ends, self._first = (threading.Event() for _ in range(3))
        self._refused: str | None = None
        # Whether the last connection was accepted, and whether a line has said that it is lost.
        self._is_up = self._lost = False
        self._client = self._made(identity)
        self._commands = Commands(home, self.topics, self._tell_name, self._tell_problem)
        self._thread = threading.Thread(target=self._run, name="mqtt", daemon=True)

    def start(self) -> None:
        """Connect; raise InputError for a wrong password, say so if the broker does not answer."""
        try:
            self._listener = self._home.events.listen(self._wake.set)
        except TooManyClients:
            self._commands.close()
            raise
        self._client.connect_async(self._broker.host, self._broker.port, KEEP_ALIVE)
        self._client.loop_start()
        if not self._first.wait(PATIENCE):
            self._say(f"Expected a broker at {self._broker}, got no answer; trying again")
        elif self._refused is not None:
            reason = self._refused
            self.close()
            raise InputError(
                f"Expected the broker {self._broker} to accept the connection, got {reason}",
                "check --mqtt-user and its password",
            )
        self._thread.start()

    @property
    def is_connected(self) -> bool:
        return bool(self._client.is_connected())

    def close(self) -> None:
        """Say goodbye and disconnect."""
        self._ends.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(2.0)
        self._home.events.leave(self._listener)
        self._commands.close()
        if self._client.is_connected():
            sent = self._client.publish(self.topics.status, OFFLINE, qos=1, retain=True)
            # The connection may end meanwhile; the broker then sends the last will.
            with suppress(RuntimeError, ValueError):
                sent.wait_for_publish(1.0)
        self._client.disconnect()
        self._client.loop_stop()

    def _made(self, identity: str) -> Any:
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion

        client = Client(CallbackAPIVersion.VERSION2, client_id=f"lrtflite-{identity}")
        broker = self._broker
        if broker.user is not None:
            client.username_pw_set(broker.user, broker.password)
        if broker.tls:
            try:
                client.tls_set(None if broker.authority is None else str(broker.authority))
            except (OSError, ValueError) as error:
                raise InputError(
                    f"Expected a PEM file of an authority in {broker.authority}, got {error}",
                    "check --mqtt-ca",
                ) from error
        client.will_set(self.topics.status, OFFLINE, qos=1, retain=True)
        client.reconnect_delay_set(FIRST_PAUSE, LAST_PAUSE)
        client.on_connect, client.on_disconnect = self._connected, self._disconnected
        client.on_message = self._message
        return client

    def _connected(self, client: Any, userdata: Any, flags: Any, reason: Any, more: Any) -> None:
        """Describe the device and tell where it stands, after each connection."""
        if reason.is_failure:
            if not self._first.is_set() and str(reason) in REFUSALS:
                self._refused = str(reason)
            elif not self._lost:
                self._lost = True
                self._say(f"The broker {self._broker} refused: {reason}; trying again")
            self._first.set()
            return
        if self._lost:
            self._say(f"Connected to the broker {self._broker} again")
        self._is_up, self._lost = True, False
        client.subscribe([(topic, 1) for topic in self.topics.commands])
        for topic, found in self._discovery.messages():
            self._tell(topic, found, retain=True)
        self._tell_classes(self._home.classes())
        self._tell(self.topics.lesson, self._lesson, retain=True)
        self._tell_name(self._commands.name)
        client.publish(self.topics.status, ONLINE, retain=True)
        self._answers.clear()
        self._first.set()

    def _disconnected(self, client: Any, userdata: Any, flags: Any, reason: Any, more: Any) -> None:
        if self._is_up and not self._ends.is_set():
            self._is_up, self._lost = False, True
            self._say(f"Lost the broker {self._broker}; trying again")

    def _message(self, client: Any, userdata: Any, message: Any) -> None:
        self._commands.take(message.topic, message.payload, retained=message.retain)

    def _run(self) -> None:
        """Tell events and pictures until the end."""
        newest, next_picture = 0, 0.0
        while not self._ends.is_set():
            self._wake.wait(LOOK)
            self._wake.clear()
            for kind, data in self._listener.take():
                self._tell_event(kind, data)
            if self._listener.is_closed:
                return
            now = time.monotonic()
            if now >= next_picture and self._client.is_connected():
                next_picture = now + PICTURE_PAUSE
                newest = self._tell_picture(newest)

    def _tell_event(self, kind: str, data: Any) -> None:
        if kind == "answer":
            found = self._answers.message(data)
            if found is not None:
                self._tell(self.topics.answer, found)
        elif kind == "lesson":
            self._lesson = lesson_message(data)
            self._tell(self.topics.lesson, self._lesson, retain=True)
        elif kind == "classes":
            self._answers.clear()
            self._tell_classes(data)

    def _tell_classes(self, classes: dict[str, Any]) -> None:
        labels = {each["slot"]: each["label"] for each in classes["classes"]}
        # The broker may still have buttons of an earlier run.
        before = range(classes["slots"]) if self._buttons is None else self._buttons
        for topic, found in self._discovery.class_buttons(labels, before):
            self._tell(topic, found, retain=True)
        if self._client.is_connected():
            self._buttons = list(labels)
        self._tell(self.topics.classes, classes, retain=True)

    def _tell_picture(self, newest: int) -> int:
        camera = self._home.camera
        if camera is None or camera.number == newest:
            return newest
        try:
            number, picture = camera.shown()
        except CameraError:
            return newest
        self._client.publish(self.topics.picture, picture)
        return number

    def _tell_name(self, name: str) -> None:
        if self._discovery.has_camera and self._client.is_connected():
            self._client.publish(self.topics.name, name, retain=True)

    def _tell_problem(self, problem: str) -> None:
        self._lesson = problem_message(problem)
        self._tell(self.topics.lesson, self._lesson, retain=True)

    def _tell(self, topic: str, found: dict[str, Any] | None, *, retain: bool = False) -> None:
        """Publish JSON, or an empty message for None; nothing without a connection.

        INVARIANT: no message is sent again later. After a lost connection everything is told again,
        and an old message that arrives after it would count.
        """
        if self._client.is_connected():
            text = "" if found is None else json.dumps(found, ensure_ascii=False)
            self._client.publish(topic, text, retain=retain)
