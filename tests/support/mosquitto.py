"""A real broker on loopback for tests, and a client that remembers what it heard."""

from __future__ import annotations

import getpass
import json
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion

# Seconds until something must have happened, on a machine that is busy.
PATIENCE = 30.0


class Mosquitto:
    """A broker with users and passwords, or open to all; it can be stopped and started again."""

    def __init__(self, folder: Path, **passwords: str) -> None:
        program = shutil.which("mosquitto", path="/usr/sbin:/usr/bin:/usr/local/sbin")
        if program is None:
            pytest.skip("needs mosquitto: apt-get install mosquitto")
        self._program, self._folder = program, folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        lines = [
            f"listener {self.port} 127.0.0.1",
            f"user {getpass.getuser()}",
            f"allow_anonymous {'false' if passwords else 'true'}",
            "persistence false",
        ]
        if passwords:
            file = folder / "passwords"
            file.write_text("")
            for user, password in passwords.items():
                command = ["mosquitto_passwd", "-b", str(file), user, password]
                subprocess.run(command, check=True, capture_output=True)
            lines.append(f"password_file {file}")
        (folder / "mosquitto.conf").write_text("\n".join(lines) + "\n")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            [self._program, "-c", str(self._folder / "mosquitto.conf")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait(self._answers)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(10)
            self._process = None

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


class Ear:
    """A client as Home Assistant is one: it hears all topics, and may publish."""

    def __init__(self, port: int, *, user: str | None = None, password: str | None = None) -> None:
        self.heard: list[tuple[str, bytes]] = []
        self._lock, self._ready = threading.Lock(), threading.Event()
        self.client = Client(CallbackAPIVersion.VERSION2)
        if user is not None:
            self.client.username_pw_set(user, password)
        self.client.on_connect = lambda client, *_: client.subscribe("#", qos=1)
        self.client.on_subscribe = lambda *_: self._ready.set()
        self.client.on_message = self._hear
        self.client.reconnect_delay_set(1, 1)
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()
        assert self._ready.wait(PATIENCE)

    def _hear(self, client: Any, userdata: Any, message: Any) -> None:
        with self._lock:
            self.heard.append((message.topic, message.payload))

    def last(self, topic: str) -> bytes | None:
        """Return the newest message of a topic."""
        with self._lock:
            return next((payload for name, payload in reversed(self.heard) if name == topic), None)

    def retained(self) -> dict[str, bytes]:
        """Return the newest message of each topic that is not empty."""
        with self._lock:
            return {topic: payload for topic, payload in dict(self.heard).items() if payload}

    def wait_json(self, topic: str, **wanted: Any) -> dict[str, Any]:
        """Wait for a message with these values, and return it."""

        def found() -> dict[str, Any] | None:
            payload = self.last(topic)
            message = json.loads(payload) if payload else None
            fits = message and all(message.get(name) == value for name, value in wanted.items())
            return message if fits else None

        message: dict[str, Any] = wait(found, f"{wanted} at {topic}, got {self.last(topic)!r}")
        return message

    def say(self, topic: str, payload: str | bytes, *, retain: bool = False) -> None:
        self.client.publish(topic, payload, qos=1, retain=retain).wait_for_publish(PATIENCE)

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


def wait(condition: Any, what: str = "the condition") -> Any:
    """Return the first true value of `condition`; fail after PATIENCE."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError(f"Waited in vain for {what}")
