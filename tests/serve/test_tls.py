"""Clients that never finish a TLS handshake neither stay nor keep others out."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from running_service import Running, frames_of

pytest.importorskip("cryptography", reason="needs the extra sign")

Serve = Callable[..., Running]
# The start of a record of TLS with a ClientHello, whose rest never comes.
HALF_HELLO = bytes.fromhex("160301020001")


@pytest.fixture
def secure(serving: Serve) -> Running:
    served = serving(tls=True)
    assert served.started.address.startswith("https://")
    return served


def connected(served: Running) -> socket.socket:
    return socket.create_connection(("127.0.0.1", served.port), timeout=30)


def ends(connection: socket.socket) -> bool:
    """Return whether the server ends a connection."""
    try:
        while connection.recv(4096):
            pass
    except ConnectionResetError:
        pass
    except TimeoutError:
        return False
    return True


def test_half_open_handshakes_end(secure: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lrtflite_serve.http.tls.HANDSHAKE", 3.0)
    with ExitStack() as stack:
        silent = [stack.enter_context(connected(secure)) for _ in range(5)]
        halves = [stack.enter_context(connected(secure)) for _ in range(5)]
        for half in halves:
            half.sendall(HALF_HELLO)
        assert secure.http.get("/api").status_code == 200
        assert all(ends(connection) for connection in (*silent, *halves))
    assert secure.http.get("/api").status_code == 200


def test_many_of_them_keep_nobody_out(secure: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lrtflite_serve.http.tls.MAX_HANDSHAKES", 8)
    with ExitStack() as stack:
        many = [stack.enter_context(connected(secure)) for _ in range(60)]
        for half in many[::2]:
            half.sendall(HALF_HELLO)
        for _ in range(3):
            address = f"{secure.started.address}api"
            assert httpx.get(address, verify=False, timeout=20).status_code == 200
        # The newest ones may still shake hands; all others are gone, long before their time is up.
        assert all(ends(connection) for connection in many[:-8])
        secure.teach("red")
        assert secure.predict(frames_of("red", 1)[0])["answers"][0]["label"] == "red"


def test_they_do_not_keep_the_service_from_ending(secure: Running) -> None:
    with connected(secure) as silent:
        assert secure.http.get("/api").status_code == 200
        secure.stop()
        assert ends(silent)


def test_what_comes_with_the_end_of_a_handshake_is_not_lost(
    secure: Running, tmp_path: Path
) -> None:
    context = ssl.create_default_context(cafile=str(tmp_path / "state.tls" / "cert.pem"))
    request = b"GET /api HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    for _ in range(10):
        with context.wrap_socket(connected(secure), server_hostname="127.0.0.1") as client:
            client.sendall(request)
            answer = b""
            while part := client.recv(65_536):
                answer += part
        assert answer.startswith(b"HTTP/1.1 200 ")


def test_other_protocols_and_old_versions_end_at_once(
    secure: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lrtflite_serve.http.tls.HANDSHAKE", 1000.0)  # not what ends them
    for words in (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"\x16\x03\x00" + bytes(40)):
        with connected(secure) as client:
            client.sendall(words)
            assert ends(client)
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    with connected(secure) as client, pytest.raises(ssl.SSLError):
        old.wrap_socket(client)
