"""TLS for connections one by one, so that a handshake that never ends keeps nobody out."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Seconds for a handshake.
HANDSHAKE = 10.0
# Most handshakes at a time. One more ends the oldest.
MAX_HANDSHAKES = 64


def server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return the settings of TLS for a server with this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    return context


class Gatekeeper:
    """Makes a protocol for each connection that shakes hands first, then speaks `protocol`.

    uvicorn's own TLS allows 60 s for a handshake, and any number of handshakes at a time.
    """

    def __init__(self, protocol: Callable[..., asyncio.Protocol], context: ssl.SSLContext) -> None:
        self._protocol, self.context = protocol, context
        # Handshakes, oldest first.
        self._waiting: dict[Gate, None] = {}

    def __call__(self, **options: Any) -> Gate:
        return Gate(self, lambda: self._protocol(**options))

    def enter(self, gate: Gate) -> None:
        self._waiting[gate] = None
        if len(self._waiting) > MAX_HANDSHAKES:
            next(iter(self._waiting)).abort()

    def leave(self, gate: Gate) -> None:
        self._waiting.pop(gate, None)

    def close(self) -> None:
        """End every handshake."""
        for gate in list(self._waiting):
            gate.abort()


class Gate(asyncio.Protocol):
    """One connection until its handshake has ended."""

    def __init__(self, keeper: Gatekeeper, make: Callable[[], asyncio.Protocol]) -> None:
        self._keeper, self._make = keeper, make
        self._transport: Any = None
        # A task that nobody refers to may be collected.
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._keeper.enter(self)
        self._task = asyncio.get_running_loop().create_task(self._shake())

    def abort(self) -> None:
        """Drop the connection at once."""
        self._keeper.leave(self)
        self._transport.abort()

    async def _shake(self) -> None:
        held = _Held()
        try:
            secure = await asyncio.get_running_loop().start_tls(
                self._transport,
                held,
                self._keeper.context,
                server_side=True,
                ssl_handshake_timeout=HANDSHAKE,
            )
        except OSError:  # no TLS, no common version, too slow, or gone
            self._transport.abort()
            return
        finally:
            self._keeper.leave(self)
        if secure is not None:  # it is None for a connection that is lost already
            held.hand_over(secure, self._make())


class _Held(asyncio.Protocol):
    """Keeps what arrives between the end of a handshake and its protocol."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._is_lost = False
        self._error: Exception | None = None

    def data_received(self, data: bytes) -> None:
        self._parts.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost, self._error = True, exc

    def hand_over(self, transport: Any, protocol: asyncio.Protocol) -> None:
        """Let a protocol go on from here."""
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        for part in self._parts:
            protocol.data_received(part)
        if self._is_lost:
            protocol.connection_lost(self._error)
