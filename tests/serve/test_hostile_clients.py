"""Clients that hold connections, lie about lengths, or send addresses nobody expects."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

import httpx
import pytest

from lrtflite_serve.http.answering import Refused
from lrtflite_serve.http.guard import MAX_WRONG, WrongTokens
from running_service import Running, frames_of

Serve = Callable[..., Running]


def connected(served: Running, *, timeout: float = 20) -> socket.socket:
    return socket.create_connection(("127.0.0.1", served.port), timeout=timeout)


def head_of(served: Running, request: bytes) -> bytes:
    """Return the first line of the answer to raw bytes."""
    with connected(served) as connection:
        connection.sendall(request)
        return connection.recv(65_536).partition(b"\r\n")[0]


@pytest.mark.parametrize(
    "path", ["/api/classes/" + "9" * 5000 + "/thumbnail", "/" + "a" * 3000 + ".js", "/a%00b.js"]
)
def test_paths_that_nothing_can_have(served: Running, path: str) -> None:
    answer = served.http.get(path)
    assert (answer.status_code, answer.json()["error"]["kind"]) == (404, "Missing")


@pytest.mark.parametrize("host", ["[::1]/?x", "[::1]evil.example", "127.0.0.1:80:90", "[::1"])
def test_hosts_that_are_no_names(served: Running, host: str) -> None:
    request = f"GET /app.js HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    assert head_of(served, request.encode()).split()[1] in (b"400", b"403")


def test_two_lengths_of_one_body(taught: Running) -> None:
    # The announced length would be counted, the chunks would fill the RAM.
    head = (
        "POST /api/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: image/png\r\n"
        "Content-Length: 10\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    chunk = b"10000\r\n" + bytes(65_536) + b"\r\n"
    with connected(taught) as connection, suppress(OSError):
        connection.sendall(head.encode())
        answer = connection.recv(65_536)
        assert b" 400 " in answer.partition(b"\r\n")[0]
        for _ in range(50):
            connection.sendall(chunk)
        pytest.fail("the connection stayed open")


def test_a_body_that_nobody_reads(served: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lrtflite_serve.http.protocol.HEADERS", 0.5)
    head = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\n"
    with connected(served) as connection, suppress(OSError):
        connection.sendall(head)
        for _ in range(400):
            connection.sendall(b"a")
            time.sleep(0.02)
        pytest.fail("the connection stayed open")


def test_a_client_that_does_not_read(taught: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lrtflite_serve.http.protocol.STUCK", 0.5)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(20)
    request = b"GET /api/openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with connection, suppress(OSError):
        connection.connect(("127.0.0.1", taught.port))
        ends = time.monotonic() + 20
        while time.monotonic() < ends:
            connection.sendall(request)
            time.sleep(0.005)
        pytest.fail("the connection stayed open")


def test_a_full_server_makes_room_for_others(
    served: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lrtflite_serve.http.protocol.MAX_CONNECTIONS", 8)
    with ExitStack() as stack, served.http.stream("GET", "/api/events") as page:
        for _ in range(20):  # they say nothing, or nothing more
            one = stack.enter_context(connected(served))
            one.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            stack.enter_context(connected(served))
        for _ in range(3):
            assert httpx.get(f"{served.started.address}api", timeout=20).status_code == 200
        served.http.post("/api/lessons", json={"label": "mug"})
        lines = (line for line in page.iter_lines() if line.startswith("event: "))
        assert [next(lines), next(lines)] == ["event: hello", "event: lesson"]


def test_head_of_events_ends(served: Running) -> None:
    assert served.http.head("/api/events", timeout=5).status_code == 200
    listeners: Any = [served.http.head("/api/events", timeout=5).status_code for _ in range(40)]
    assert set(listeners) == {200}


def blocked(wrong: WrongTokens, address: str) -> bool:
    try:
        wrong.check(address)
    except Refused:
        return True
    return False


def test_one_network_of_ipv6_is_one_client() -> None:
    # A single machine has 2^64 addresses there.
    wrong = WrongTokens()
    for number in range(MAX_WRONG):
        wrong.add(f"2001:db8:1:2:{number:x}::7")
    assert blocked(wrong, "2001:db8:1:2:ffff::1")
    assert not blocked(wrong, "2001:db8:1:3::1")
    for _ in range(MAX_WRONG):
        wrong.add("::ffff:192.0.2.1")
        wrong.add("fe80::1%eth0")
    assert blocked(wrong, "192.0.2.1")
    assert not blocked(wrong, "::ffff:192.0.2.2")
    assert blocked(wrong, "fe80::2%eth0")
    assert not blocked(wrong, "")


def test_forwarding_headers_do_not_count(serving: Serve) -> None:
    served = serving(host="0.0.0.0")
    address = f"http://127.0.0.1:{served.port}/api"
    statuses = [
        httpx.get(
            address,
            headers={
                "authorization": "Bearer wrong",
                "x-forwarded-for": f"192.0.2.{number}",
                "forwarded": f"for=192.0.2.{number}",
            },
        ).status_code
        for number in range(MAX_WRONG + 1)
    ]
    assert statuses == [401] * MAX_WRONG + [429]


def test_text_of_an_attacker_is_not_sent_back_as_a_page(taught: Running) -> None:
    evil = "<img src=x onerror=alert(1)>"
    for answer in (
        taught.http.get(f"/{evil}"),
        taught.http.get(f"/api/{evil}"),
        taught.http.patch("/api/classes/0", json={"label": "x", evil: 1}),
        taught.http.post("/api/predict", content=b"", headers={"content-type": "text/html"}),
    ):
        assert answer.status_code >= 400
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert taught.http.patch("/api/classes/0", json={"label": evil}).status_code == 200
    assert taught.predict(frames_of("red", 1)[0])["answers"][0]["label"] == evil
