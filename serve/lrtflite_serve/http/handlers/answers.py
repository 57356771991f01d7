"""Handlers of answers: facts, predictions, events, the device's camera, the diagnosis."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from lrtflite.errors import InputError
from lrtflite_serve.http.answering import as_json
from lrtflite_serve.http.api import Api
from lrtflite_serve.http.bodies import announced, kind_of, number_of, read_frame
from lrtflite_serve.http.streaming import EventStream
from lrtflite_serve.service.pixels import frame_of, most_bytes

# Seconds that a request waits for a new picture of the device's camera.
CAMERA_WAIT = 10.0
MAX_STREAM_NAME = 64


async def about(api: Api, request: Request) -> Response:
    facts = api.service.about(token_required=api.token_required, secure=api.secure)
    return as_json(facts)


async def predict(api: Api, request: Request) -> Response:
    top = number_of(request, "top", 3, most=1000) or 1
    stream = request.query_params.get("stream")
    if stream is not None and not 0 < len(stream) <= MAX_STREAM_NAME:
        raise InputError(
            f"Expected stream as a text of 1 to {MAX_STREAM_NAME} characters, got {len(stream)}"
        )
    service = api.service
    count = announced(request, most_bytes(kind_of(request), service.size))
    async with api.budget.spend(count):
        kind, content = await read_frame(request, service.size)

        def answer() -> dict[str, object]:
            frame = frame_of(kind, content, service.size)
            return service.predict(frame, stream=stream, top=top)

        return as_json(await api.quick(answer))


async def events(api: Api, request: Request) -> Response:
    service = api.service
    classes = await api.quick(service.classes)
    hello = {"bundle": service.learner.bundle.identity, "classes": classes}
    return EventStream(service.events, hello)


async def camera_frame(api: Api, request: Request) -> Response:
    after = number_of(request, "after", 0) or 0
    camera = api.service.device_camera()
    # A thread for each waiting client would be a waste: pictures come many times a second.
    number = await api.newer(camera, after, CAMERA_WAIT)
    if number <= after:
        camera.shown()  # raises the problem of a lost camera
        return Response(status_code=204)
    number, content = await api.quick(camera.shown)
    headers = {"x-frame": str(number), "cache-control": "no-store"}
    return Response(content, headers=headers, media_type="image/jpeg")


async def diagnosis(api: Api, request: Request) -> Response:
    return Response(await api.slow(api.service.diagnose), media_type="application/json")
