"""Addresses: where a server listens, and how others on the network reach it."""

from __future__ import annotations

import ipaddress
import re
import socket
from contextlib import suppress

from lrtflite.errors import InputError, LrtfliteError

# An address for documentation: nothing is sent, the system only chooses a route.
_ELSEWHERE = ("192.0.2.1", 9)
BACKLOG = 128
# Part of a host name between two dots; names of machines may have an underscore.
_PART = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens; raise LrtfliteError if it cannot."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (socket.gaierror, OverflowError, UnicodeError) as error:
        raise LrtfliteError(
            f"Expected an address of this machine as host, got {host} ({error})",
            "use 127.0.0.1, or 0.0.0.0 for the whole network",
        ) from error
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(BACKLOG)
    except OSError as error:
        made.close()
        raise LrtfliteError(
            f"Cannot listen on port {port} of {host}: {error.strerror}",
            "another program uses it, or it is not allowed: choose another --port or --host",
        ) from error
    return made


def is_loopback(made: socket.socket) -> bool:
    """Return whether only this machine reaches the socket."""
    return ipaddress.ip_address(made.getsockname()[0]).is_loopback


def shown_host(made: socket.socket) -> str:
    """Return the address to type into a browser, with brackets for IPv6."""
    address = ipaddress.ip_address(made.getsockname()[0])
    if address.is_unspecified:
        address = ipaddress.ip_address(_outward() or "127.0.0.1")
    return f"[{address}]" if address.version == 6 else str(address)


def _outward() -> str | None:
    """Return the address from which this machine reaches others."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ELSEWHERE)
            found: str = probe.getsockname()[0]
            return found
        except OSError:
            return None


def host_name(text: str) -> str:
    """Return a host name as a browser sends it; raise InputError for anything else."""
    with suppress(ValueError):
        return str(ipaddress.ip_address(text.strip("[]")))
    try:
        name = text.lower().removesuffix(".").encode("idna").decode()
    except UnicodeError:
        name = ""
    if not all(map(_PART.fullmatch, name.split("."))):
        raise InputError(
            f"Expected a host name for --name, got {text!a}",
            "write for example board.local, without https:// and without a port",
        )
    return name
