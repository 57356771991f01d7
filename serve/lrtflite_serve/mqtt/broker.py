"""The broker to connect to, as a user names it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lrtflite.errors import InputError
from lrtflite.files.reading import read_whole

PORT, TLS_PORT = 1883, 8883
# Environment variable with the password; an argument would be seen by every user of the machine.
PASSWORD = "LRTFLITE_MQTT_PASSWORD"
MAX_PASSWORD = 4096
# Topics begin with these by default; Home Assistant looks for devices below the second.
PREFIX, DISCOVERY = "lrtflite", "homeassistant"
# Part of a topic: no wildcard, no slash at either end.
_PREFIX = re.compile(r"[^/+#\s$][^+#\s]{0,98}[^/+#\s]|[^/+#\s$]")


@dataclass(frozen=True)
class Broker:
    """A broker, and the topics to use there.

    `authority` is a PEM file with the certificate that must have signed that of the broker; without
    it, one of the system's. Both need `tls`.
    """

    host: str
    port: int = PORT
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: bool = False
    authority: Path | None = None
    prefix: str = PREFIX
    discovery: str = DISCOVERY

    def __post_init__(self) -> None:
        for option, prefix in (("--mqtt-prefix", self.prefix), ("discovery", self.discovery)):
            if not prefix.isprintable() or not _PREFIX.fullmatch(prefix):
                raise InputError(
                    f"Expected the start of a topic for {option}, without spaces, + and #, got "
                    f"{prefix!a}",
                    "write for example home/kitchen",
                )
        if self.password is not None and self.user is None:
            raise InputError("Expected a user with the password, got none", "give --mqtt-user")
        if self.authority is not None and not self.authority.is_file():
            raise InputError(
                f"Expected a PEM file of an authority, got {self.authority}, which is not a file",
                "check --mqtt-ca",
            )

    @classmethod
    def of(
        cls,
        address: str,
        *,
        user: str | None = None,
        password_file: Path | None = None,
        tls: bool = False,
        authority: Path | None = None,
        prefix: str = PREFIX,
        environment: Mapping[str, str] = os.environ,
    ) -> Broker:
        """Return the broker at HOST or HOST:PORT, with a password from a file or PASSWORD."""
        tls = tls or authority is not None
        host, port = _address(address, TLS_PORT if tls else PORT)
        password = environment.get(PASSWORD) or None
        if password_file is not None:
            password = _password(password_file)
        return cls(host, port, user, password if user else None, tls, authority, prefix)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def _address(text: str, port: int) -> tuple[str, int]:
    found = re.fullmatch(r"(\[[0-9A-Za-z:.%]+\]|[^\s:/@\[\]]+)(?::([0-9]{1,5}))?", text, re.ASCII)
    number = port if found is None or found[2] is None else int(found[2])
    if found is None or not 0 < number < 65_536:
        raise InputError(
            f"Expected HOST or HOST:PORT for --mqtt, got {text!a}",
            f"write for example homeassistant.local:{PORT}; the user goes into --mqtt-user",
        )
    return found[1].strip("[]"), number


def _password(path: Path) -> str:
    try:
        content = read_whole(path, most=MAX_PASSWORD).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"Expected a readable file with a password, got {path} ({error})",
            "check --mqtt-password-file",
        ) from error
    return content.rstrip("\r\n")
