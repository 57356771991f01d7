"""Attacks by pages of other sites, and by others on the network."""

from __future__ import annotations

import hmac
import socket
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from lrtflite_serve.http.answering import Refused
from lrtflite_serve.http.guard import MAX_ADDRESSES, WrongTokens
from running_service import Running, frames_of

Serve = Callable[..., Running]


def kind_and_status(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["kind"]


def test_a_page_of_another_site_cannot_post(taught: Running) -> None:
    # text/plain needs no preflight, so a browser sends it.
    headers = {"origin": "https://evil.example", "content-type": "text/plain"}
    answer = taught.http.post("/api/undo", content=b"{}", headers=headers)
    assert kind_and_status(answer) == (403, "Refused")
    assert taught.labels() == ["red", "blue"]


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "http://127.0.0.1",  # another port
        "https://127.0.0.1:{port}",  # another scheme
        "http://localhost:{port}",  # another name than the Host header
        "http://127.0.0.1:{port}.evil.example",
        "http://evil.example:{port}",
    ],
)
def test_other_origins(taught: Running, origin: str) -> None:
    headers = {"origin": origin.format(port=taught.port)}
    assert taught.http.post("/api/undo", headers=headers).status_code == 403
    assert taught.labels() == ["red", "blue"]


def test_the_page_itself_may_write(taught: Running) -> None:
    headers = {"origin": f"http://127.0.0.1:{taught.port}", "sec-fetch-site": "same-origin"}
    assert taught.http.post("/api/undo", headers=headers).status_code == 200
    assert taught.labels() == ["red"]


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_other_sites_may_not_even_read(taught: Running, site: str) -> None:
    # As an <img> or <script> of another site, or of another port of this machine.
    answer = taught.http.get("/api/classes/0/thumbnail", headers={"sec-fetch-site": site})
    assert answer.status_code == 403
    assert taught.http.get("/", headers={"sec-fetch-site": site}).status_code != 403  # a link


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example"])
def test_dns_rebinding(taught: Running, host: str) -> None:
    # After rebinding, Origin and Host agree and there is no Sec-Fetch-Site over plain HTTP.
    name = host.format(port=taught.port)
    headers = {"host": name, "origin": f"http://{name}"}
    assert taught.http.post("/api/undo", headers=headers).status_code == 403
    assert taught.http.get("/", headers={"host": name}).status_code == 403
    assert taught.labels() == ["red", "blue"]


def test_names_of_this_machine(serving: Serve) -> None:
    served = serving(names=("board.lan",))
    for name in ("localhost", "127.0.0.1", "[::1]", "board.lan", "BOARD.LAN.", "x.localhost"):
        host = f"{name}:{served.port}"
        headers = {"host": host, "origin": f"http://{host}"}
        assert served.http.get("/api", headers=headers).status_code == 200, name


def exchange(served: Running, request: str) -> bytes:
    """Send raw bytes and return all that comes back until the server closes or 10 s are over."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as connection:
        connection.sendall(request.replace("\n", "\r\n").encode())
        found = b""
        while part := connection.recv(65536):
            found += part
    return found


def test_websockets(served: Running) -> None:
    found = exchange(
        served,
        f"GET /api/events HTTP/1.1\nHost: 127.0.0.1:{served.port}\nConnection: Upgrade\n"
        "Upgrade: websocket\nSec-WebSocket-Version: 13\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\nOrigin: https://evil.example\n\n",
    )
    assert found.startswith(b"HTTP/1.1 400")


def test_hosts_that_are_missing_or_given_twice(served: Running) -> None:
    assert b" 403 " in exchange(served, "GET /api HTTP/1.0\n\n").partition(b"\r\n")[0]
    twice = "GET /api HTTP/1.1\nHost: localhost\nHost: evil.example\nConnection: close\n\n"
    assert exchange(served, twice).partition(b"\r\n")[0].split()[1] in (b"400", b"403")


def test_no_answer_allows_another_origin(served: Running) -> None:
    headers = {
        "origin": "https://evil.example",
        "access-control-request-method": "PATCH",
        "access-control-request-headers": "content-type",
    }
    answer = served.http.request("OPTIONS", "/api/classes/0", headers=headers)
    assert answer.status_code in (403, 405)
    assert not any(name.startswith("access-control") for name in answer.headers)


@pytest.fixture
def on_the_network(serving: Serve) -> Running:
    return serving(host="0.0.0.0")


def asked(served: Running, **headers: str) -> httpx.Response:
    """Ask the server at its loopback address, without the token of the client."""
    address = f"http://127.0.0.1:{served.port}/api"
    with httpx.Client() as client:
        return client.get(address, headers=headers)


def test_beyond_loopback_a_token_is_required(on_the_network: Running) -> None:
    token = on_the_network.started.token
    assert token is not None
    assert len(token) >= 24
    assert on_the_network.started.link.endswith(f"/#token={token}")
    assert on_the_network.http.get("/api").json()["token_required"] is True
    assert asked(on_the_network).status_code == 401
    assert asked(on_the_network).headers["www-authenticate"] == "Bearer"
    for wrong in (f"Bearer {token[:-1]}", f"Basic {token}", f"Bearer {token}x", token):
        assert asked(on_the_network, authorization=wrong).status_code == 401, wrong
    assert asked(on_the_network, authorization=f"Bearer {token}").status_code == 200


def test_the_page_itself_needs_no_token(on_the_network: Running) -> None:
    address = f"http://127.0.0.1:{on_the_network.port}/"
    assert httpx.get(address).status_code in (200, 404)


def test_a_token_in_the_query_does_not_count(on_the_network: Running) -> None:
    # It would end up in histories and logs.
    token = on_the_network.started.token
    address = f"http://127.0.0.1:{on_the_network.port}/api?token={token}"
    assert httpx.get(address).status_code == 401


def test_the_token_is_kept_for_its_owner_only(serving: Serve) -> None:
    served = serving(host="0.0.0.0")
    path = served.settings.beside("token")
    assert path.stat().st_mode & 0o077 == 0
    assert path.read_text().strip() == served.started.token
    served.stop()
    assert serving(host="0.0.0.0").started.token == served.started.token


def test_wrong_tokens_are_limited(on_the_network: Running) -> None:
    token = on_the_network.started.token
    answers = [asked(on_the_network, authorization="Bearer wrong") for _ in range(12)]
    assert [answer.status_code for answer in answers] == [401] * 10 + [429] * 2
    # Even the right one: otherwise guesses would not be limited.
    assert asked(on_the_network, authorization=f"Bearer {token}").status_code == 429


def test_tokens_are_compared_in_constant_time(
    on_the_network: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[Any, Any]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return False

    monkeypatch.setattr(hmac, "compare_digest", compare)
    assert asked(on_the_network, authorization="Bearer guess").status_code == 401
    assert compared == [(b"guess", str(on_the_network.started.token).encode())]


def test_wrong_tokens_are_forgotten_and_addresses_bounded() -> None:
    now = 0.0
    wrong = WrongTokens(clock=lambda: now)
    for _ in range(10):
        wrong.check("a")
        wrong.add("a")
    with pytest.raises(Refused):
        wrong.check("a")
    wrong.check("b")
    now = 61.0
    wrong.check("a")
    for number in range(MAX_ADDRESSES + 5):
        wrong.add(f"address {number}")
    wrong.check("address 0")


def test_beyond_loopback_rebinding_is_refused_too(on_the_network: Running) -> None:
    headers = {"host": "evil.example", "origin": "http://evil.example"}
    assert on_the_network.http.get("/api", headers=headers).status_code == 403
    frame = frames_of("red", 1)[0]
    answer = on_the_network.http.post(
        "/api/predict",
        content=frame.tobytes(),
        headers={**headers, "content-type": "application/octet-stream"},
    )
    assert answer.status_code == 403
