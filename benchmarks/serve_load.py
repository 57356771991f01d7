"""Put a load on `lrtflite serve`: clients that send frames, RAM over time, answers per second.

    python benchmarks/serve_load.py BUNDLE [--clients 10] [--minutes 10] [--fps 5] [--pictures]

Each client sends frames of its own stream, `--fps` per second or as fast as they are answered (0),
and listens to events. Client 0 teaches a class every ten seconds. RAM is that of the server alone,
in MB of 10^6 bytes; time is from the request to the whole answer.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from lrtflite.system.machine import this_machine

RAW, JSON = {"Content-Type": "application/octet-stream"}, {"Content-Type": "application/json"}
# Seconds between two lessons, and frames of each.
LESSON_EVERY, LESSON_FRAMES = 10.0, 20
LABELS = 12


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("bundle")
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--fps", type=float, default=5, help="frames per second and client; 0: all")
    parser.add_argument("--pictures", action="store_true", help="send JPEGs of 640 x 480")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, server(given.bundle, Path(folder)) as (port, pid):
        time.sleep(2)
        idle = ram_mb(pid)
        print(f"{this_machine()}\nidle: {idle:.1f} MB")
        teach(port, "thing 0", 0)
        taught = ram_mb(pid)
        clients = [Client(port, number, given) for number in range(given.clients)]
        ends = time.monotonic() + 60 * given.minutes
        rows = []
        while time.monotonic() < ends:
            time.sleep(min(10.0, 6 * given.minutes))
            rows.append((time.monotonic(), ram_mb(pid)))
            print(f"  {60 * given.minutes - (ends - rows[-1][0]):4.0f} s: {rows[-1][1]:.1f} MB")
        for client in clients:
            client.stop()
        report(clients, 60 * given.minutes, idle, taught, [ram for _, ram in rows])


def report(
    clients: list[Client], seconds: float, idle: float, taught: float, rams: list[float]
) -> None:
    times = np.concatenate([client.times for client in clients])
    half = len(rams) // 2
    print(f"taught one class: {taught:.1f} MB; peak: {max(rams):.1f} MB")
    print(f"above idle: {max(rams) - idle:.1f} MB; above taught: {max(rams) - taught:.1f} MB")
    print(f"mean of each half: {np.mean(rams[:half]):.1f}, {np.mean(rams[half:]):.1f} MB")
    p50, p95 = np.percentile(times, [50, 95])
    print(
        f"{len(times)} frames, {len(times) / seconds:.1f} per second; "
        f"p50 {p50:.1f} ms, p95 {p95:.1f} ms; failures: {sum(each.failures for each in clients)}"
    )


class Client:
    """A thread that sends frames until `stop`, and another one that listens to events."""

    def __init__(self, port: int, number: int, given: Any) -> None:
        self.times: list[float] = []
        self.failures = 0
        self._port, self._number, self._given = port, number, given
        self._ends = threading.Event()
        self._threads = [
            threading.Thread(target=each, daemon=True) for each in (self._send, self._listen)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._ends.set()
        self._threads[0].join(30)

    def _send(self) -> None:
        rng = np.random.default_rng(self._number)
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        body, headers = frame(rng, pictures=self._given.pictures)
        lesson = time.monotonic() + LESSON_EVERY
        while not self._ends.is_set():
            started = time.monotonic()
            path = f"/api/predict?stream={self._number}"
            status, _ = ask(connection, "POST", path, body, headers)
            self.times.append(1e3 * (time.monotonic() - started))
            self.failures += status != 200
            if self._number == 0 and started >= lesson:
                lesson = started + LESSON_EVERY
                teach(self._port, f"thing {rng.integers(LABELS)}", int(rng.integers(1 << 30)))
            if self._given.fps:
                self._ends.wait(max(0.0, started + 1 / self._given.fps - time.monotonic()))

    def _listen(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        connection.request("GET", "/api/events")
        answer = connection.getresponse()
        while not self._ends.is_set() and answer.readline():
            pass


def frame(rng: np.random.Generator, *, pictures: bool) -> tuple[bytes, dict[str, str]]:
    """Return the body of a frame of the packaged bundle's size, or of a JPEG."""
    if not pictures:
        return rng.integers(0, 255, (128, 128, 3), np.uint8).tobytes(), RAW
    import io

    from PIL import Image

    out = io.BytesIO()
    small = rng.integers(0, 255, (30, 40, 3), np.uint8)
    Image.fromarray(small).resize((640, 480)).save(out, "JPEG", quality=85)
    return out.getvalue(), {"Content-Type": "image/jpeg"}


def teach(port: int, label: str, seed: int) -> None:
    """Teach a class some frames; a lesson of another client is not an error."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body = json.dumps({"label": label}).encode()
    status, found = ask(connection, "POST", "/api/lessons", body, JSON)
    if status == 201:
        rng, lesson = np.random.default_rng(seed), found["id"]
        for number in range(LESSON_FRAMES):
            path = f"/api/lessons/{lesson}/frames?number={number}"
            ask(connection, "POST", path, frame(rng, pictures=False)[0], RAW)
        ask(connection, "POST", f"/api/lessons/{lesson}/commit", b"", {})
    connection.close()


def ask(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: bytes,
    headers: dict[str, str],
) -> tuple[int, Any]:
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


@contextmanager
def server(bundle: str, folder: Path) -> Iterator[tuple[int, int]]:
    """Run `lrtflite serve` in a process of its own; yield its port and its number."""
    words = [sys.executable, "-m", "lrtflite_cli.main", "serve", bundle, "--port", "0"]
    words += ["--state", str(folder / "state")]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        line = child.stdout.readline()
        yield int(line.strip().rstrip("/").rpartition(":")[2]), child.pid
    finally:
        child.terminate()
        child.wait(30)


def ram_mb(pid: int) -> float:
    """Return the resident memory of a process, in MB of 10^6 bytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    main()
