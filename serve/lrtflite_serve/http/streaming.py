"""Responses in parts: files, and events for as long as a client listens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from lrtflite_serve.service.events import Events

CHUNK = 1 << 18
# Seconds between two lines that keep a connection open.
HEARTBEAT = 10.0


class FileResponse(Response):
    """A file, read in a thread; `done` is called at the end, however it ends."""

    def __init__(
        self,
        path: Path,
        media_type: str,
        headers: dict[str, str] | None = None,
        done: Callable[[], None] = lambda: None,
    ) -> None:
        self._path, self._done = path, done
        size = path.stat().st_size
        super().__init__(
            None, 200, {"content-length": str(size), **(headers or {})}, media_type=media_type
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        loop = asyncio.get_running_loop()
        try:
            with open(self._path, "rb") as file:
                head = {"type": "http.response.start", "status": self.status_code}
                await send({**head, "headers": self.raw_headers})
                while part := await loop.run_in_executor(None, file.read, CHUNK):
                    await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            await loop.run_in_executor(None, self._done)


class EventStream(Response):
    """Server-sent events; `hello` comes first."""

    def __init__(self, events: Events, hello: dict[str, Any]) -> None:
        self._events = events
        self._ready = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._listener = events.listen(self._wake)
        self._listener.put("hello", hello)
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        super().__init__(None, 200, headers, media_type="text/event-stream")
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(_disconnected(receive))
        gone.add_done_callback(lambda _: self._ready.set())
        head = {"type": "http.response.start", "status": self.status_code}
        try:
            await send({**head, "headers": self.raw_headers})
            while scope["method"] != "HEAD" and not gone.done() and not self._listener.is_closed:
                events = self._listener.take()
                lines = b"".join(_line(kind, data) for kind, data in events) or b": \n\n"
                await send({"type": "http.response.body", "body": lines, "more_body": True})
                with suppress(TimeoutError, asyncio.TimeoutError):
                    await asyncio.wait_for(self._ready.wait(), HEARTBEAT)
                self._ready.clear()
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            gone.cancel()
            self._events.leave(self._listener)

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._ready.set)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _line(kind: str, data: Any) -> bytes:
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return f"event: {kind}\ndata: {text}\n\n".encode()
