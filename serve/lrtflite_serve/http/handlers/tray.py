"""Handlers of the tray: frames that were unknown or unsure."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from lrtflite.errors import InputError
from lrtflite_serve.http.answering import as_json
from lrtflite_serve.http.api import Api
from lrtflite_serve.http.bodies import read_fields
from lrtflite_serve.service import changes
from lrtflite_serve.service.pixels import as_jpeg


async def tray(api: Api, request: Request) -> Response:
    return as_json([each.to_json() for each in api.service.tray.frames])


async def picture(api: Api, request: Request) -> Response:
    [waiting] = api.service.tray.find([request.path_params["frame"]])
    content = await api.quick(as_jpeg, waiting.frame)
    return Response(content, headers={"cache-control": "no-store"}, media_type="image/jpeg")


async def teach(api: Api, request: Request) -> Response:
    fields = await read_fields(request, {"ids": list, "label": str, "slot": int})
    ids = fields.get("ids")
    if not ids or not all(isinstance(each, str) for each in ids):
        raise InputError("Expected ids as a list of texts, got another value", "give some ids")
    target = fields.get("label"), fields.get("slot")
    return as_json(await api.slow(changes.teach_tray, api.service, ids, *target))


async def remove(api: Api, request: Request) -> Response:
    api.service.tray.remove([request.path_params["frame"]])
    return _broadcast(api)


async def clear(api: Api, request: Request) -> Response:
    ids = request.query_params.get("ids")
    if ids is None:
        api.service.tray.clear()
    else:
        api.service.tray.drop(ids.split(","))
    return _broadcast(api)


def _broadcast(api: Api) -> Response:
    """Send every page the number of waiting frames, and return the frames."""
    service = api.service
    service.events.publish("tray", {"count": len(service.tray)})
    return as_json([each.to_json() for each in service.tray.frames])
