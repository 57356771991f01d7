"""Responses: JSON, errors as JSON with a status, files, bytes."""

from __future__ import annotations

import json
import logging
import traceback
from typing import Any

from starlette.responses import Response

from lrtflite import errors
from lrtflite.errors import LrtfliteError

_log = logging.getLogger("lrtflite")
# Status of each kind of error; the first match along the classes of an error counts.
STATUS: dict[type[Exception], int] = {
    errors.InputError: 400,
    errors.UnreadableFile: 400,
    errors.DataError: 400,
    errors.Missing: 404,
    errors.Busy: 409,
    errors.SessionCancelled: 409,
    errors.StateError: 409,
    errors.TooLarge: 413,
    errors.TooManyClients: 429,
    errors.NotOffered: 501,
    errors.MissingExtra: 501,
    errors.CameraError: 503,
    errors.DiskFull: 507,
}


class Refused(Exception):
    """A request that is refused before anything reads it, with its status."""

    def __init__(self, status: int, problem: str, advice: str | None = None) -> None:
        super().__init__(problem)
        self.status, self.problem, self.advice = status, problem, advice


def as_json(data: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    content = json.dumps(data, separators=(",", ":"), allow_nan=False).encode()
    return Response(content, status, headers, media_type="application/json")


def error_json(
    status: int, kind: str, problem: str, advice: str | None = None, *, close: bool = False
) -> Response:
    headers = {"connection": "close"} if close else None
    data = {"error": {"kind": kind, "problem": problem, "advice": advice}}
    return as_json(data, status, headers)


def response_of(error: Exception) -> Response:
    """Return the response to a request that failed."""
    if isinstance(error, Refused):
        close = error.status in (403, 408, 413, 415, 429)
        return error_json(error.status, "Refused", error.problem, error.advice, close=close)
    if isinstance(error, LrtfliteError):
        status = next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)
        close = status == 413  # the rest of the body is not read
        kind = type(error).__name__
        return error_json(status, kind, error.problem, error.advice, close=close)
    _log.error("A request failed: %s", "".join(traceback.format_exception(error)).strip())
    return error_json(500, "InternalError", "The service failed", "see its log")
