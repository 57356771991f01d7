"""The application: routes of the table, the page, and the guard in front."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.requests import ClientDisconnect, Request
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from lrtflite_serve.http.answering import error_json, response_of
from lrtflite_serve.http.api import Api
from lrtflite_serve.http.endpoint import Handler
from lrtflite_serve.http.guard import Guard
from lrtflite_serve.http.page import page_file, page_folder
from lrtflite_serve.http.routes import ENDPOINTS


class _SlotConvertor(IntegerConvertor):
    """A whole number of few digits, because `int` refuses thousands of them with ValueError."""

    regex = "[0-9]{1,9}"


register_url_convertor("slot", _SlotConvertor())


class PathApp:
    """All methods of one path."""

    def __init__(self, api: Api, handlers: Mapping[str, Handler]) -> None:
        self._api, self._handlers = api, handlers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        handler = self._handlers.get("GET" if request.method == "HEAD" else request.method)
        try:
            if handler is None:
                response = error_json(405, "Refused", f"Cannot answer {request.method} here")
                response.headers["allow"] = ", ".join(self._handlers)
            else:
                response = await handler(self._api, request)
        except ClientDisconnect:
            return
        except Exception as error:
            response = response_of(error)
        await response(scope, receive, send)


class PageApp:
    """Everything that is not an endpoint: files of the page, or 404."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if scope["path"] == "/api" or scope["path"].startswith("/api/"):
            response = error_json(
                404, "Missing", "There is no such endpoint", "see /api/openapi.json"
            )
        else:
            response = await page_file(self._folder, request)
        await response(scope, receive, send)


def application(
    api: Api,
    *,
    names: tuple[str, ...] = (),
    token: str | None = None,
    folder: Path | None = None,
) -> ASGIApp:
    """Return the ASGI application of a service."""
    by_path: dict[str, dict[str, Handler]] = {}
    for endpoint in ENDPOINTS:
        by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint.handler
    routes = [Route(path, PathApp(api, handlers)) for path, handlers in by_path.items()]
    router = Router(routes, redirect_slashes=False, default=PageApp(folder or page_folder()))
    return Guard(router, names=names, token=token)
