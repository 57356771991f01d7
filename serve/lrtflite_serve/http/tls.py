"""TLS with limits for handshakes, so that unfinished ones do not block other clients."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Seconds that a handshake may take.
HANDSHAKE = 10.0
# Maximum number of handshakes at a time; one more ends the oldest.
MAX_HANDSHAKES = 64


def server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return the settings of TLS for a server with this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    return context


class HandshakeLimiter:
    """Makes a `Handshake` for each connection, which then continues with `protocol`.

    uvicorn's own TLS allows 60 s for a handshake, and any number of handshakes at a time.
    """

    def __init__(self, protocol: Callable[..., asyncio.Protocol], context: ssl.SSLContext) -> None:
        self._protocol, self.context = protocol, context
        # Handshakes, oldest first.
        self._waiting: dict[Handshake, None] = {}

    def __call__(self, **options: Any) -> Handshake:
        return Handshake(self, lambda: self._protocol(**options))

    def enter(self, handshake: Handshake) -> None:
        self._waiting[handshake] = None
        if len(self._waiting) > MAX_HANDSHAKES:
            next(iter(self._waiting)).abort()

    def leave(self, handshake: Handshake) -> None:
        self._waiting.pop(handshake, None)

    def close(self) -> None:
        """End every handshake."""
        for handshake in list(self._waiting):
            handshake.abort()


class Handshake(asyncio.Protocol):
    """One connection until its handshake has ended."""

    def __init__(self, limiter: HandshakeLimiter, make: Callable[[], asyncio.Protocol]) -> None:
        self._limiter, self._make = limiter, make
        self._transport: Any = None
        # asyncio holds tasks weakly; without a reference, a task may be collected.
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._limiter.enter(self)
        self._task = asyncio.get_running_loop().create_task(self._shake())

    def abort(self) -> None:
        """Drop the connection at once."""
        self._limiter.leave(self)
        self._transport.abort()

    async def _shake(self) -> None:
        buffer = _Buffer()
        try:
            secure = await asyncio.get_running_loop().start_tls(
                self._transport,
                buffer,
                self._limiter.context,
                server_side=True,
                ssl_handshake_timeout=HANDSHAKE,
            )
        except OSError:  # no TLS, no common version, too slow, or gone
            self._transport.abort()
            return
        finally:
            self._limiter.leave(self)
        if secure is not None:  # it is None for a connection that is lost already
            buffer.hand_over(secure, self._make())


class _Buffer(asyncio.Protocol):
    """Keeps data that arrives after a handshake, before its protocol is ready."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._is_lost = False
        self._error: Exception | None = None

    def data_received(self, data: bytes) -> None:
        self._parts.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost, self._error = True, exc

    def hand_over(self, transport: Any, protocol: asyncio.Protocol) -> None:
        """Pass everything that arrived to a protocol, which continues from there."""
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        for part in self._parts:
            protocol.data_received(part)
        if self._is_lost:
            protocol.connection_lost(self._error)
