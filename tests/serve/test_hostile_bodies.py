"""Bodies that are too large, too slow, no pictures, or pictures that would fill the RAM."""

from __future__ import annotations

import io
import socket
import struct
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress

import httpx
import pytest
from PIL import Image

from lrtflite_serve.http.protocol import MAX_CONNECTIONS
from lrtflite_serve.service.pixels import MAX_BYTES, MAX_PIXELS
from running_service import RAW, SIZE, Running, frames_of


def test_oversized_bodies(taught: Running) -> None:
    most = SIZE * SIZE * 3
    answer = taught.http.post("/api/predict", content=bytes(most + 1), headers=RAW)
    assert answer.status_code == 413
    picture = {"content-type": "image/jpeg"}
    answer = taught.http.post("/api/predict", content=bytes(MAX_BYTES + 1), headers=picture)
    assert answer.status_code == 413
    json = {"content-type": "application/json"}
    answer = taught.http.post("/api/lessons", content=b" " * 70_000, headers=json)
    assert answer.status_code == 413
    assert taught.predict(frames_of("red", 1)[0])["answers"]


def test_an_oversized_body_without_a_length(taught: Running) -> None:
    sent = 0

    def parts() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(100):
            sent += 65_536
            yield bytes(65_536)

    with suppress(httpx.TransportError):  # the server may close before everything is sent
        answer = taught.http.post("/api/predict", content=parts(), headers=RAW)
        assert answer.status_code == 413
    assert sent < 100 * 65_536 or answer.status_code == 413
    assert taught.http.get("/api").status_code == 200


def png(width: int, height: int) -> bytes:
    """Return a small PNG of many pixels, all of them black."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    rows = zlib.compress(bytes((width + 1) * min(height, 20)), 9)
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [5000, 30_000, 1_000_000])
def test_picture_bombs(taught: Running, side: int) -> None:
    assert side * side > MAX_PIXELS
    bomb = png(side, side)
    assert len(bomb) < MAX_BYTES
    started = time.monotonic()
    answer = taught.http.post("/api/predict", content=bomb, headers={"content-type": "image/png"})
    assert answer.status_code == 400
    assert "pixels" in answer.json()["error"]["problem"]
    assert time.monotonic() - started < 30


@pytest.mark.parametrize("kind", ["image/jpeg", "image/png", "image/webp", "image/bmp"])
@pytest.mark.parametrize(
    "content", [b"", b"no picture", b"\xff\xd8\xff" + bytes(200), b"BM" + bytes(60)]
)
def test_no_pictures(taught: Running, kind: str, content: bytes) -> None:
    answer = taught.http.post("/api/predict", content=content, headers={"content-type": kind})
    assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "UnreadableFile")


def test_a_picture_is_only_what_its_type_says(taught: Running) -> None:
    out = io.BytesIO()
    Image.new("RGB", (200, 200)).save(out, "GIF")
    for kind in ("image/png", "image/gif", "image/svg+xml", "text/html"):
        answer = taught.http.post(
            "/api/predict", content=out.getvalue(), headers={"content-type": kind}
        )
        assert answer.status_code == (400 if kind == "image/png" else 415)


@pytest.mark.parametrize("text", ["{", "[]", "1", "null", '{"label": "a"} x', "[" * 60_000, "\xff"])
def test_no_json(served: Running, text: str) -> None:
    headers = {"content-type": "application/json"}
    answer = served.http.post("/api/lessons", content=text.encode("latin-1"), headers=headers)
    assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "InputError")


def test_json_of_another_type(served: Running) -> None:
    # A form or a text needs no preflight.
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        answer = served.http.post(
            "/api/lessons", content=b'{"label": "mug"}', headers={"content-type": kind}
        )
        assert answer.status_code == 415


def closed(connection: socket.socket) -> bytes:
    """Return what the server sends until it closes the connection."""
    found = b""
    while part := connection.recv(65_536):
        found += part
    return found


def drip(served: Running, slowly: bytes, at_once: bytes = b"") -> None:
    """Send byte by byte; fail unless the server ends the connection meanwhile."""
    connection = socket.create_connection(("127.0.0.1", served.port), timeout=20)
    with connection, suppress(OSError):
        connection.sendall(at_once)
        for byte in slowly:
            connection.sendall(bytes([byte]))
            time.sleep(0.02)
        pytest.fail("the connection stayed open")


def test_slow_headers(served: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lrtflite_serve.http.protocol.HEADERS", 0.3)
    for start in (b"", b"GET /api HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "):
        with socket.create_connection(("127.0.0.1", served.port), timeout=20) as connection:
            connection.sendall(start)
            assert closed(connection) == b""
    # A byte now and then does not help.
    drip(served, b"GET /api HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"a" * 500)


def test_a_slow_body(taught: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lrtflite_serve.http.bodies.SILENCE", 0.3)
    head = (
        "POST /api/predict HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Content-Type: application/octet-stream\r\nContent-Length: {SIZE * SIZE * 3}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", taught.port), timeout=20) as connection:
        connection.sendall(head.encode() + bytes(100))
        assert closed(connection).startswith(b"HTTP/1.1 408")
    monkeypatch.setattr("lrtflite_serve.http.bodies.SMALL", 0.5)
    drip(taught, bytes(500), head.encode())


def test_headers_without_an_end(served: Running) -> None:
    connection = socket.create_connection(("127.0.0.1", served.port), timeout=20)
    with connection, suppress(OSError):
        connection.sendall(b"GET /api HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 200_000)
        assert closed(connection).startswith(b"HTTP/1.1 400")


def test_too_many_connections(served: Running) -> None:
    open_ones = []
    try:
        for _ in range(MAX_CONNECTIONS + 8):
            connection = socket.create_connection(("127.0.0.1", served.port), timeout=20)
            open_ones.append(connection)
        # Those that have said nothing for longest make room.
        for connection in open_ones[:8]:
            with suppress(ConnectionResetError):
                assert connection.recv(1) == b""
        open_ones[-1].sendall(b"GET /api HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert open_ones[-1].recv(12) == b"HTTP/1.1 200"
    finally:
        for connection in open_ones:
            connection.close()
