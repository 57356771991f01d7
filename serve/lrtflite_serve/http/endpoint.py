"""One endpoint: its route and its line in the documentation, so that they cannot differ."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response

from lrtflite_serve.http.api import Api

Handler = Callable[[Api, Request], Awaitable[Response]]
JSON = "application/json"


@dataclass(frozen=True)
class Parameter:
    """A parameter of the query: its name, its type in JSON Schema, and its meaning."""

    name: str
    kind: str
    about: str


@dataclass(frozen=True)
class Endpoint:
    """A method of a path. `body` and `answer` are names of schemas, or types of content."""

    method: str
    path: str
    handler: Handler
    about: str
    answer: str
    body: tuple[str, ...] = ()
    status: int = 200
    query: tuple[Parameter, ...] = ()
    errors: tuple[int, ...] = field(default=())
