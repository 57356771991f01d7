"""Handlers of downloads and the upload of a state."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from lrtflite.arguments import shown
from lrtflite.errors import InputError
from lrtflite.files.scratch import Scratch
from lrtflite_serve.http.answering import Refused, as_json
from lrtflite_serve.http.api import Api
from lrtflite_serve.http.bodies import kind_of, save_body
from lrtflite_serve.http.streaming import FileResponse
from lrtflite_serve.service.disk import disk_errors
from lrtflite_serve.transfers.archive import MAX_ARCHIVE
from lrtflite_serve.transfers.exports import export_bundle, export_model, export_state
from lrtflite_serve.transfers.imports import import_state
from lrtflite_serve.transfers.swapping import UPLOAD_PREFIX

ZIP = "application/zip"


async def download_state(api: Api, request: Request) -> Response:
    return await _download(api, "state.zip", partial(export_state, api.service))


async def download_bundle(api: Api, request: Request) -> Response:
    return await _download(api, "bundle.zip", partial(export_bundle, api.service))


async def download_model(api: Api, request: Request) -> Response:
    form = request.query_params.get("form", "float32")
    if form not in ("float32", "int8"):
        raise InputError(f"Expected form as float32 or int8, got {shown(form)}", "choose one")

    export = partial(export_model, api.service, int8=form == "int8")
    return await _download(api, f"model-{form}.zip", export)


async def upload_state(api: Api, request: Request) -> Response:
    if kind_of(request) != ZIP:
        raise Refused(415, f"Expected a body of {ZIP}", "set Content-Type")
    service = api.service
    with api.one_upload(), disk_errors("take an upload"):
        state = Path(service.settings.state).absolute()
        scratch = await api.slow(_scratch_beside, state)
        try:
            archive = scratch.path / "upload.zip"
            await save_body(request, archive, MAX_ARCHIVE)
            return as_json(await api.slow(import_state, service, archive))
        finally:
            await api.slow(scratch.remove)


def _scratch_beside(state: Path) -> Scratch:
    return Scratch(prefix=UPLOAD_PREFIX, parent=state.parent)


async def _download(api: Api, name: str, write: Callable[[Path], None]) -> Response:
    """Write a file in a temporary folder, which is removed once it was sent."""
    scratch = await api.slow(Scratch)
    try:
        out = scratch.path / name
        await api.slow(write, out)
        headers = {
            "content-disposition": f'attachment; filename="{name}"',
            "cache-control": "no-store",
        }
        return FileResponse(out, ZIP, headers, scratch.remove)
    except BaseException:
        scratch.remove()
        raise
