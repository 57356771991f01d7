"""uvicorn, told to stop by an event, with limits, and without its own signals and logs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp
from uvicorn import Config, Server

from lrtflite_serve.http.api import Api
from lrtflite_serve.http.protocol import PatientProtocol
from lrtflite_serve.http.tls import HandshakeLimiter, server_context

# Seconds that a kept connection may be silent, and that requests have to end at the end.
KEEP_ALIVE, GRACE = 15, 3
# Most bytes of the headers of a request.
MAX_HEADERS = 16_384
# Ticks of uvicorn's main loop per second.
TICKS = 10


class _Server(Server):
    def __init__(
        self,
        config: Config,
        api: Api,
        on_start: Callable[[], None],
        stopping: threading.Event,
        gate: HandshakeLimiter | None,
    ) -> None:
        super().__init__(config)
        self._api, self._on_start, self._stopping = api, on_start, stopping
        self._gate = gate
        self._tick: asyncio.Future[None] | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # signals are the caller's

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_start()

    async def on_tick(self, counter: int) -> bool:
        if counter % TICKS == 0 and (self._tick is None or self._tick.done()):
            # Not awaited: a tick may wait for a lesson that ends.
            self._tick = asyncio.ensure_future(asyncio.to_thread(self._api.service.tick))
        self.should_exit = self.should_exit or self._stopping.is_set()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Event streams end by themselves; a lesson is cancelled, so that nobody waits for it.
        self._api.service.events.close()
        await asyncio.to_thread(self._api.service.lessons.close)
        if self._gate is not None:
            self._gate.close()
        await super().shutdown(sockets)
        # Over TLS, a client that no longer reads would keep its connection.
        for connection in list(self.server_state.connections):
            if isinstance(connection, PatientProtocol):
                connection.transport.abort()
        await asyncio.sleep(0)


async def run_server(
    app: ASGIApp,
    api: Api,
    listener: socket.socket,
    *,
    certificate: tuple[Path, Path] | None,
    on_start: Callable[[], None],
    stopping: threading.Event,
) -> None:
    """Answer requests until `stopping` is set."""
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    gate = None
    if certificate is not None:
        gate = HandshakeLimiter(PatientProtocol, server_context(*certificate))
    protocol: Any = gate or PatientProtocol
    config = Config(
        app,
        http=protocol,
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=GRACE,
        h11_max_incomplete_event_size=MAX_HEADERS,
    )
    await _Server(config, api, on_start, stopping, gate).serve([listener])
