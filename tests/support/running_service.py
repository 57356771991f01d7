"""A real server on a free port of 127.0.0.1, in a thread, and frames to teach it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from numpy.typing import NDArray

from coloured_pictures import COLOURS
from lrtflite_serve.run import Started, serve
from lrtflite_serve.settings import Settings

SIZE = 128  # of the frames of the demo bundle
RAW = {"content-type": "application/octet-stream"}
ZIP = {"content-type": "application/zip"}
PATIENCE = 60.0


@dataclass
class Running:
    """A server that answers, and a client of it."""

    http: httpx.Client
    started: Started
    settings: Settings
    stopping: threading.Event
    thread: threading.Thread

    def stop(self) -> None:
        """Ask the server to stop, and wait until it has."""
        self.stopping.set()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive(), "the server did not end"

    @property
    def port(self) -> int:
        port = httpx.URL(self.started.address).port
        assert port is not None
        return port

    def classes(self) -> dict[str, Any]:
        found: dict[str, Any] = self.http.get("/api/classes").json()
        return found

    def labels(self) -> list[str]:
        return [each["label"] for each in self.classes()["classes"]]

    def begin(self, **target: Any) -> str:
        """Begin a lesson and return its id."""
        answer = self.http.post("/api/lessons", json=target)
        assert answer.status_code == 201, answer.text
        lesson: str = answer.json()["id"]
        return lesson

    def send(self, lesson: str, frame: NDArray[np.uint8], number: int | None = None) -> Any:
        query = "" if number is None else f"?number={number}"
        path = f"/api/lessons/{lesson}/frames{query}"
        return self.http.post(path, content=frame.tobytes(), headers=RAW)

    def begin_status(self, label: str) -> int:
        """Begin a lesson if possible; return the status of the answer."""
        return self.http.post("/api/lessons", json={"label": label}).status_code

    def commit(self, lesson: str) -> Any:
        return self.http.post(f"/api/lessons/{lesson}/commit")

    def teach(self, colour: str, count: int = 6, **target: Any) -> dict[str, Any]:
        """Teach frames of a colour under its own name, or another target."""
        lesson = self.begin(**(target or {"label": colour}))
        for number, frame in enumerate(frames_of(colour, count)):
            assert self.send(lesson, frame, number).status_code == 200
        answer = self.commit(lesson)
        assert answer.status_code == 200, answer.text
        result: dict[str, Any] = answer.json()
        return result

    def predict(self, frame: NDArray[np.uint8], query: str = "") -> dict[str, Any]:
        answer = self.http.post(f"/api/predict{query}", content=frame.tobytes(), headers=RAW)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found


def frames_of(colour: str, count: int, *, seed: int = 0) -> list[NDArray[np.uint8]]:
    """Return noisy frames with a square of a colour on grey, at different places."""
    rng = np.random.default_rng([seed, *COLOURS[colour]])
    found = []
    for _ in range(count):
        frame = rng.normal(128, 12, (SIZE, SIZE, 3))
        top, left = rng.integers(8, 48, 2)
        frame[top : top + 64, left : left + 64] = rng.normal(COLOURS[colour], 20, (64, 64, 3))
        found.append(np.clip(frame, 0, 255).astype(np.uint8))
    return found


def events_of(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    """Yield the kind and the data of each server-sent event."""
    kind = ""
    for line in lines:
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield kind, json.loads(line.removeprefix("data: "))


@contextmanager
def running(bundle: Path, state: Path, **options: Any) -> Iterator[Running]:
    """Serve a bundle and a state for the block; raise what the server raises.

    `say` gets the lines for a terminal; all other options are settings.
    """
    say = options.pop("say", lambda line: None)
    settings = Settings(bundle=bundle, state=state, **{"port": 0, **options})
    ready, stopping = threading.Event(), threading.Event()
    found: list[Started] = []
    errors: list[BaseException] = []

    def on_start(started: Started) -> None:
        found.append(started)
        ready.set()

    def run() -> None:
        try:
            serve(settings, on_start=on_start, say=say, stopping=stopping)
        except BaseException as error:
            errors.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert ready.wait(PATIENCE)
        if errors:
            raise errors[0]
        token = found[0].token
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        address = found[0].address
        with httpx.Client(
            base_url=address, timeout=PATIENCE, headers=headers, verify=False
        ) as http:
            yield Running(http, found[0], settings, stopping, thread)
    finally:
        stopping.set()
        thread.join(PATIENCE)
    assert not thread.is_alive(), "the server did not end"
    if errors:
        raise errors[0]
