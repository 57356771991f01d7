"""The command itself: what it prints, how it ends, and one line for what cannot be."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from lrtflite import Learner
from lrtflite.errors import MissingExtra
from lrtflite.system import extras
from lrtflite_serve.mqtt.broker import Broker
from lrtflite_serve.run import serve
from lrtflite_serve.settings import Settings
from running_service import Running, frames_of
from serve_command import COMMAND, started


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_open_streams_and_a_lesson(
    tmp_path: Path, demo: Path, number: signal.Signals
) -> None:
    with started(tmp_path, demo) as (child, address), httpx.Client(base_url=address) as client:
        served = Running(client, None, None, None, None)  # type: ignore[arg-type]
        served.teach("red", 2)
        before = {path.name: path.read_bytes() for path in (tmp_path / "state").iterdir()}
        with client.stream("GET", "/api/events") as events:
            lines = events.iter_lines()
            assert next(lines) == "event: hello"
            lesson = served.begin(label="mug")
            served.send(lesson, frames_of("green", 1)[0])
            child.send_signal(number)
            _, said = child.communicate(timeout=60)
        assert child.returncode == 130
        assert said == "Error: Interrupted; nothing is left half-written\n"
        assert {path.name: path.read_bytes() for path in (tmp_path / "state").iterdir()} == before
    with Learner.open(demo, tmp_path / "state") as learner:
        assert learner.learned == ("red",)


def error_line(folder: Path, *words: object) -> str:
    """Return the one line of a command that cannot start."""
    done = subprocess.run(
        [*COMMAND, *map(str, words)], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout) == (1, ""), done
    [line] = done.stderr.splitlines()
    return line


def test_a_port_in_use(tmp_path: Path, demo: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        line = error_line(tmp_path, demo, "--port", port)
    assert line.startswith(f"Error: Cannot listen on port {port} of 127.0.0.1: Address already in")
    assert "--port" in line
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_start(tmp_path: Path, demo: Path) -> None:
    (tmp_path / "text.pem").write_text("no certificate")
    cases: dict[str, tuple[object, ...]] = {
        "Cannot use the certificate none.pem": (demo, "--cert", "none.pem", "--key", "none.pem"),
        "Cannot use the certificate text.pem": (demo, "--cert", "text.pem", "--key", "text.pem"),
        "Expected a certificate and its key": (demo, "--cert", "text.pem"),
        "Expected a bundle folder": ("nowhere",),
        "Expected an address of this machine": (demo, "--host", "no such host"),
        "Cannot listen on port": (demo, "--host", "192.0.2.1"),
    }
    for problem, words in cases.items():
        assert f"Error: {problem}" in error_line(tmp_path, *words, "--port", 0)
    assert "none.mp4" in error_line(tmp_path, demo, "--camera", "none.mp4", "--port", 0)
    assert [path.name for path in tmp_path.iterdir()] == ["text.pem"]


def test_a_missing_extra_leaves_no_state(
    tmp_path: Path, demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = extras.find_spec
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "paho" else real(name))
    settings = Settings(demo, tmp_path / "state", port=0, mqtt=Broker("127.0.0.1"))
    with pytest.raises(MissingExtra, match="paho-mqtt"):
        serve(settings)
    assert list(tmp_path.iterdir()) == []


def test_a_state_in_use_and_one_of_another_bundle(tmp_path: Path, demo: Path) -> None:
    with Learner.open(demo, tmp_path / "state"):
        line = error_line(tmp_path, demo, "--port", 0)
    assert "is in use by another learner" in line
    from fake_bundle import make_bundle, open_fake

    with open_fake(make_bundle(tmp_path / "bundle"), tmp_path / "other") as learner:
        assert learner.labels
    line = error_line(tmp_path, demo, "--state", "other", "--port", 0)
    assert line.startswith("Error: ")


def test_tls_with_a_certificate_that_is_made_once(tmp_path: Path, demo: Path) -> None:
    pytest.importorskip("cryptography", reason="needs the extra sign")
    made = []
    for _ in range(2):
        with started(tmp_path, demo, "--tls", "--name", "board.lan") as (_, address):
            assert address.startswith("https://127.0.0.1:")
            context = ssl.create_default_context(cafile=str(tmp_path / "state.tls" / "cert.pem"))
            with httpx.Client(base_url=address, verify=context) as client:
                facts = client.get("/api").json()
                origin = {"origin": address.replace("https", "http").rstrip("/")}
                assert client.post("/api/undo", headers=origin).status_code == 403
            assert facts["secure"] is True
        made.append((tmp_path / "state.tls" / "cert.pem").read_bytes())
        assert (tmp_path / "state.tls" / "key.pem").stat().st_mode & 0o077 == 0
        assert (tmp_path / "state.tls").stat().st_mode & 0o077 == 0
    assert made[0] == made[1]


def test_the_network_gets_a_token_in_the_address(tmp_path: Path, demo: Path) -> None:
    with started(tmp_path, demo, "--host", "0.0.0.0") as (_, address):
        base, token = address.split("#token=")
        with httpx.Client(base_url=base) as client:
            assert client.get("/api").status_code == 401
            headers = {"authorization": f"Bearer {token}"}
            assert client.get("/api", headers=headers).status_code == 200


def test_without_a_bundle_there_is_a_note(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    script = (
        "import importlib.util as u; real = u.find_spec; "
        "u.find_spec = lambda n, *a: None if n.startswith('efficientnet') else real(n, *a); "
        "from lrtflite_cli.main import main; main(['serve', '--port', '0'])"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        address = child.stdout.readline().removeprefix("Open ").strip()
        [note] = httpx.get(f"{address}api").json()["notes"]
        assert "demo bundle" in note
    finally:
        child.terminate()
        _, said = child.communicate(timeout=60)
    assert said.startswith("Note: The demo bundle")
