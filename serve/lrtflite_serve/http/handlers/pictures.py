"""Handlers of kept pictures."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from lrtflite.errors import InputError
from lrtflite_serve.http.answering import as_json
from lrtflite_serve.http.api import Api
from lrtflite_serve.http.bodies import number_of, read_fields
from lrtflite_serve.http.handlers.classes import slot_of
from lrtflite_serve.service import changes
from lrtflite_serve.service.album import type_of


async def pictures(api: Api, request: Request) -> Response:
    slot = number_of(request, "slot", None)
    if slot is None:
        raise InputError("Expected the query parameter slot, got none", "give the slot of a class")
    kept = api.service.kept()
    api.service.label_of(slot)  # raises Missing for a free slot
    ids = await api.slow(kept.ids, slot)
    return as_json([{"id": each, "slot": slot} for each in ids])


async def picture(api: Api, request: Request) -> Response:
    content = await api.slow(api.service.kept().content, request.path_params["picture"])
    return Response(content, headers={"cache-control": "no-store"}, media_type=type_of(content))


async def remove(api: Api, request: Request) -> Response:
    return as_json(
        await api.slow(changes.remove_picture, api.service, request.path_params["picture"])
    )


async def move(api: Api, request: Request) -> Response:
    fields = await read_fields(request, {"slot": int})
    if "slot" not in fields:
        raise InputError("Expected the field slot, got none", "give the slot of a class")
    picture = request.path_params["picture"]
    return as_json(await api.slow(changes.move_picture, api.service, picture, fields["slot"]))


async def relearn(api: Api, request: Request) -> Response:
    return as_json(await api.slow(changes.relearn, api.service, slot_of(request)))
