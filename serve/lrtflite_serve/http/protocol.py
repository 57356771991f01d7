"""uvicorn's protocol, with limits for clients that send their headers slowly or not at all."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

# Seconds for the headers of a request, once its connection is open or its first byte has come.
HEADERS = 10.0
# Most open connections; a browser opens up to six.
MAX_CONNECTIONS = 128


class PatientProtocol(H11Protocol):
    """HTTP/1.1 for at most 128 connections, each with a limited time for its headers."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.abort()
            return
        self._expect_headers()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._late is None:
            self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _expect_headers(self) -> None:
        self._late = self.loop.call_later(HEADERS, self._give_up)

    def _give_up(self) -> None:
        self._late = None
        if not self.transport.is_closing():
            self.transport.close()

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
