"""Handlers of lessons: begin, frames, commit, cancel, and lessons of the device's camera."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from lrtflite.errors import Busy
from lrtflite_serve.http.answering import as_json
from lrtflite_serve.http.api import Api
from lrtflite_serve.http.bodies import announced, kind_of, number_of, read_fields, read_frame
from lrtflite_serve.service.pixels import frame_of, most_bytes
from lrtflite_serve.service.recording import MAX_WAITING
from lrtflite_serve.settings import check_lesson

# Seconds that a client waits for the extraction of earlier frames, and between two looks.
PATIENCE, PAUSE = 30.0, 0.01


async def begin(api: Api, request: Request) -> Response:
    fields = await read_fields(request, {"label": str, "slot": int})
    recording = await api.slow(api.service.begin, fields.get("label"), fields.get("slot"))
    return as_json(recording.to_json(), 201)


async def teach(api: Api, request: Request) -> Response:
    wanted = {"label": str, "slot": int, "seconds": float, "fps": float}
    fields = await read_fields(request, wanted)
    settings = api.service.settings
    seconds = fields.get("seconds", settings.seconds)
    fps = fields.get("fps", settings.fps)
    check_lesson(seconds, fps)

    def start() -> dict[str, object]:
        service = api.service
        return service.teach(
            fields.get("label"), fields.get("slot"), seconds=seconds, fps=fps
        ).to_json()

    return as_json(await api.slow(start), 202)


async def add_frame(api: Api, request: Request) -> Response:
    recording = api.service.lessons.find(request.path_params["lesson"])
    number = number_of(request, "number", None)
    if recording.device:
        raise Busy(
            f"Cannot add frames to {recording.label}: the device's camera is recording it",
            "wait for its end, or cancel it",
        )
    size = api.service.size
    count = announced(request, most_bytes(kind_of(request), size))
    async with api.budget.spend(count):
        kind, content = await read_frame(request, size)
        for _ in range(round(PATIENCE / PAUSE)):
            if recording.waiting < MAX_WAITING or recording.is_over:
                break
            await asyncio.sleep(PAUSE)

        def add() -> dict[str, object]:
            recording.add(frame_of(kind, content, size), number)
            return recording.to_json()

        return as_json(await api.quick(add))


async def state(api: Api, request: Request) -> Response:
    recording = api.service.lessons.find(request.path_params["lesson"])
    recording.touch()
    return as_json(recording.to_json())


async def commit(api: Api, request: Request) -> Response:
    return as_json(await api.slow(api.service.lessons.commit, request.path_params["lesson"]))


async def cancel(api: Api, request: Request) -> Response:
    await api.slow(api.service.lessons.cancel, request.path_params["lesson"])
    return as_json(await api.quick(api.service.classes))
