"""uvicorn's protocol, with limits for clients that send their headers slowly or not at all."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

# Seconds for the headers of a request, once its connection is open or its first byte has come, and
# for a body that nobody reads any more.
HEADERS = 10.0
# Seconds in which a client that does not read has to take some of its answer.
STUCK = 30.0
# Most open connections; a browser opens up to six.
MAX_CONNECTIONS = 128


class PatientProtocol(H11Protocol):
    """HTTP/1.1 for at most 128 connections, each with limited time to send headers and to read.

    One connection too many closes the one that has been idle for longest, so that clients who keep
    connections open do not keep others out.
    """

    _late: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None
    _idle_since = 0.0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        if len(self.connections) > MAX_CONNECTIONS:
            self._make_room()
        self._expect_headers()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_answering:
            self._stop_waiting()
        elif self._late is None:
            self._expect_headers()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._idle_since = self.loop.time()
        if self.transport.is_closing():  # and stays open until everything is read
            self._watch_reader(True)

    def shutdown(self) -> None:
        super().shutdown()
        if not self._is_answering and not self.transport.get_write_buffer_size():
            self.transport.abort()  # over TLS, `close` waits for an answer of the client

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader(True)

    def resume_writing(self) -> None:
        self._watch_reader(False)
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._watch_reader(False)
        super().connection_lost(exc)

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _make_room(self) -> None:
        idle = [
            each
            for each in self.connections
            if isinstance(each, PatientProtocol) and each is not self and not each._is_answering
        ]
        closed = min(idle, key=lambda each: each._idle_since, default=self)
        self.connections.discard(closed)
        closed.transport.abort()

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

    def _watch_reader(self, watch: bool) -> None:
        """End the connection after a while in which nothing is read, or stop watching."""
        if self._stuck is not None:
            self._stuck.cancel()
        self._stuck = self.loop.call_later(STUCK, self.transport.abort) if watch else None
