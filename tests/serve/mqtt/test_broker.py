"""The broker as a user names it: addresses, passwords, topics."""

from __future__ import annotations

from pathlib import Path

import pytest

from lrtflite.errors import InputError
from lrtflite_serve.mqtt.broker import PASSWORD, Broker


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("home.local", "home.local", 1883),
        ("192.0.2.7:1884", "192.0.2.7", 1884),
        ("[fe80::1%eth0]:99", "fe80::1%eth0", 99),
        ("[::1]", "::1", 1883),
    ],
)
def test_addresses(address: str, host: str, port: int) -> None:
    broker = Broker.of(address, environment={})
    assert (broker.host, broker.port) == (host, port)


@pytest.mark.parametrize(
    "address",
    ["", ":1883", "home:", "home:0", "home:65536", "home:x", "a b", "mqtt://home", "me:pw@home",
     "::1", "home:1883:2", "home\n", "home:\u0661"],
)  # fmt: skip
def test_other_addresses(address: str) -> None:
    with pytest.raises(InputError, match=r"HOST or HOST:PORT for --mqtt, got .* --mqtt-user"):
        Broker.of(address, environment={})


def test_tls_has_a_port_of_its_own(tmp_path: Path) -> None:
    assert Broker.of("home", tls=True, environment={}).port == 8883
    with pytest.raises(InputError, match="check --mqtt-ca"):
        Broker.of("home", authority=tmp_path / "absent.pem", environment={})


def test_passwords_come_from_the_environment_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(" of the file \n")
    broker = Broker.of("home", user="me", environment={PASSWORD: "secret"})
    assert broker.password == "secret"
    assert "secret" not in repr(broker)
    assert Broker.of("home", environment={PASSWORD: "secret"}).password is None
    both = Broker.of("home", user="me", password_file=file, environment={PASSWORD: "secret"})
    assert both.password == " of the file "
    with pytest.raises(InputError, match="check --mqtt-password-file"):
        Broker.of("home", user="me", password_file=tmp_path / "absent", environment={})
    with pytest.raises(InputError, match="give --mqtt-user"):
        Broker("home", password="secret")


@pytest.mark.parametrize("prefix", ["", "/home", "home/", "home/#", "+", "a b", "$SYS", "a\x00b"])
def test_prefixes_that_are_no_topics(prefix: str) -> None:
    with pytest.raises(InputError, match="start of a topic for --mqtt-prefix"):
        Broker.of("home", prefix=prefix, environment={})
