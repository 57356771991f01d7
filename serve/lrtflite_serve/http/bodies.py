"""Read bodies of requests within limits of size, time and RAM."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.requests import ClientDisconnect, Request

from lrtflite.arguments import shown
from lrtflite.errors import InputError
from lrtflite_serve.http.answering import Refused
from lrtflite_serve.service.pixels import PICTURES, RAW, most_bytes

MAX_JSON = 65_536
# Seconds without a byte, and seconds for all bytes of a small body and of an upload.
SILENCE, SMALL, UPLOAD = 10.0, 30.0, 1800.0
# Most bytes of frames that are in RAM before they are decoded.
BUDGET = 24_000_000


class Budget:
    """Bytes that all requests together may hold; a request waits until there is room."""

    def __init__(self, total: int = BUDGET) -> None:
        self._free = total
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def spend(self, count: int) -> AsyncIterator[None]:
        async with self._changed:
            try:
                room = self._changed.wait_for(lambda: self._free >= count)
                await asyncio.wait_for(room, SMALL)
            except (TimeoutError, asyncio.TimeoutError):
                raise Refused(429, "Too many pictures are being sent", "try again later") from None
            self._free -= count
        try:
            yield
        finally:
            self._free += count
            async with self._changed:
                self._changed.notify_all()


def kind_of(request: Request) -> str:
    """Return the type of the body, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def announced(request: Request, most: int) -> int:
    """Return the size of the body as announced, or `most`; refuse a larger one."""
    text = request.headers.get("content-length")
    if text is None:
        return most
    size = int(text) if text.isascii() and text.isdigit() else most + 1
    if size > most:
        raise Refused(413, f"Expected a body of at most {most:,} bytes, got more", "send less")
    return size


async def chunks(request: Request, most: int, seconds: float) -> AsyncIterator[bytes]:
    """Yield the parts of a body of at most `most` bytes that arrives in time."""
    announced(request, most)
    ends, found = time.monotonic() + seconds, 0
    parts = request.stream().__aiter__()
    while True:
        left = min(SILENCE, ends - time.monotonic())
        try:
            part = await asyncio.wait_for(parts.__anext__(), max(0.0, left))
        except StopAsyncIteration:
            return
        except (TimeoutError, asyncio.TimeoutError):
            raise Refused(408, "The body of the request came too slowly", "send it again") from None
        found += len(part)
        if found > most:
            raise Refused(413, f"Expected a body of at most {most:,} bytes, got more", "send less")
        yield part


async def read_body(request: Request, most: int) -> bytes:
    return b"".join([part async for part in chunks(request, most, SMALL)])


async def read_frame(request: Request, size: int) -> tuple[str, bytes]:
    """Return the type and the bytes of a frame, raw or as a picture."""
    kind = kind_of(request)
    if kind != RAW and kind not in PICTURES:
        raise Refused(
            415,
            f"Expected a frame as {', '.join([RAW, *PICTURES])}, got {shown(kind)}",
            "set Content-Type",
        )
    return kind, await read_body(request, most_bytes(kind, size))


async def read_fields(request: Request, allowed: Mapping[str, type]) -> dict[str, Any]:
    """Return the fields of a JSON object; raise for another type, field or value."""
    if kind_of(request) != "application/json":
        raise Refused(415, "Expected a body of application/json", "set Content-Type")
    content = await read_body(request, MAX_JSON)
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputError("Expected a JSON object, got another text", "send an object")
    for name, value in found.items():
        if name not in allowed:
            raise InputError(
                f"Expected the fields {', '.join(allowed)}, got {shown(name)}", "leave it out"
            )
        wanted = allowed[name]
        is_number = wanted is float and isinstance(value, int)
        if isinstance(value, bool) or not (isinstance(value, wanted) or is_number):
            raise InputError(
                f"Expected {name} as {_NAMES[wanted]}, got {shown(value)}", "send another value"
            )
    return found


_NAMES = {str: "a text", int: "a whole number", float: "a number", list: "a list"}


async def save_body(request: Request, path: Path, most: int) -> None:
    """Write a body to a new file, part by part."""
    loop = asyncio.get_running_loop()
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        async for part in chunks(request, most, UPLOAD):
            await loop.run_in_executor(None, _write, handle, part)
    except ClientDisconnect:
        raise Refused(400, "The upload ended too early", "send it again") from None
    finally:
        os.close(handle)


def _write(handle: int, part: bytes) -> None:
    view = memoryview(part)
    while view:
        view = view[os.write(handle, view) :]


def number_of(
    request: Request, name: str, default: int | None, *, most: int = 1 << 31
) -> int | None:
    """Return a whole number of the query; raise InputError for anything else."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= most):
        raise InputError(
            f"Expected {name} as a whole number from 0 to {most}, got {shown(text)}",
        )
    return int(text)
