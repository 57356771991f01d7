"""Handlers of classes: the list, thumbnails, rename, forget, undo."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from lrtflite.errors import InputError
from lrtflite_serve.http.answering import as_json
from lrtflite_serve.http.api import Api
from lrtflite_serve.http.bodies import read_fields
from lrtflite_serve.service import changes


async def classes(api: Api, request: Request) -> Response:
    return as_json(await api.quick(api.service.classes))


async def thumbnail(api: Api, request: Request) -> Response:
    service = api.service
    content = service.thumbnails.content(service.label_of(slot_of(request)))
    return Response(content, headers={"cache-control": "no-store"}, media_type="image/jpeg")


async def rename(api: Api, request: Request) -> Response:
    fields = await read_fields(request, {"label": str})
    if "label" not in fields:
        raise InputError("Expected the field label, got none", "give a name")
    return as_json(await api.slow(changes.rename, api.service, slot_of(request), fields["label"]))


async def forget(api: Api, request: Request) -> Response:
    return as_json(await api.slow(changes.forget, api.service, slot_of(request)))


async def undo(api: Api, request: Request) -> Response:
    return as_json(await api.slow(changes.undo, api.service))


def slot_of(request: Request) -> int:
    """Return the slot in the path of a request."""
    return int(request.path_params["slot"])
