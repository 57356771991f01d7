"""The OpenAPI document, made from the table of endpoints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from lrtflite import __version__
from lrtflite_serve.http.endpoint import JSON, Endpoint

_TEXT, _WHOLE, _NUMBER, _YES = (
    {"type": kind} for kind in ("string", "integer", "number", "boolean")
)
_MAYBE_TEXT = {"type": ["string", "null"]}
_MAYBE_NUMBER = {"type": ["number", "null"]}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


_LESSON = {
    "id": _TEXT,
    "label": _TEXT,
    "slot": _WHOLE,
    "new": _YES,
    "state": {"enum": ["recording", "learning", "learned", "cancelled", "failed"]},
    "frames": _WHOLE,
    "extracted": _WHOLE,
    "hints": _list({"enum": ["blurred", "dark", "same"]}),
    "enough": _YES,
    "seconds": _NUMBER,
}
_SETTLED = _object(
    kind={"enum": ["answer", "unsure", "unknown"]},
    label=_MAYBE_TEXT,
    slot=_WHOLE,
    share=_NUMBER,
    frames=_WHOLE,
)
SCHEMAS: dict[str, dict[str, Any]] = {
    "Error": _object(error=_object(kind=_TEXT, problem=_TEXT, advice=_MAYBE_TEXT)),
    "About": _object(
        name=_TEXT,
        version=_TEXT,
        bundle=_object(id=_TEXT, strategy=_TEXT, network=_TEXT, input_size=_WHOLE, slots=_WHOLE),
        state=_TEXT,
        device=_MAYBE_TEXT,
        reports_familiarity=_YES,
        unknown=_MAYBE_NUMBER,
        teach=_object(seconds=_NUMBER, fps=_NUMBER, max_frames=_WHOLE),
        camera=_MAYBE_TEXT,
        keep_pictures=_YES,
        can_export_model=_YES,
        token_required=_YES,
        secure=_YES,
        notes=_list(_TEXT),
    ),
    "Class": _object(
        slot=_WHOLE,
        label=_TEXT,
        pictures=_WHOLE,
        learned=_YES,
        background=_YES,
        thumbnail=_MAYBE_TEXT,
        kept=_WHOLE,
    ),
    "Classes": _object(
        sessions=_WHOLE,
        slots=_WHOLE,
        free=_WHOLE,
        can_undo=_YES,
        last_change=_MAYBE_TEXT,
        classes=_list(_ref("Class")),
    ),
    "Answer": _object(
        answers=_list(_object(label=_TEXT, slot=_WHOLE, probability=_NUMBER)),
        familiarity=_MAYBE_NUMBER,
        settled={"oneOf": [_SETTLED, {"type": "null"}]},
        ms=_NUMBER,
        nothing_learned=_YES,
    ),
    "Name": {**_object(label=_TEXT), "required": ["label"]},
    "Slot": {**_object(slot=_WHOLE), "required": ["slot"]},
    "Target": _object(label=_TEXT, slot=_WHOLE),
    "Teaching": _object(label=_TEXT, slot=_WHOLE, seconds=_NUMBER, fps=_NUMBER),
    "TrayTarget": {
        **_object(ids=_list(_TEXT), label=_TEXT, slot=_WHOLE),
        "required": ["ids"],
    },
    "Lesson": _object(**_LESSON),
    "Learned": _object(
        label=_TEXT,
        slot=_WHOLE,
        new=_YES,
        frames=_WHOLE,
        ms=_NUMBER,
        extra_ms=_NUMBER,
        notes=_list(_TEXT),
        confused=_list(_object(label=_TEXT, slot=_WHOLE, share=_NUMBER)),
        classes=_ref("Classes"),
    ),
    "Tray": _list(
        _object(
            id=_TEXT,
            kind={"enum": ["unknown", "unsure"]},
            label=_MAYBE_TEXT,
            familiarity=_MAYBE_NUMBER,
        )
    ),
    "Pictures": _list(_object(id=_TEXT, slot=_WHOLE)),
    "Replaced": _object(old_state=_TEXT, old_pictures=_MAYBE_TEXT, classes=_ref("Classes")),
}
_PATH_PARAMETER = re.compile(r"\{(\w+)(?::(\w+))?\}")


def document(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """Return the OpenAPI document of these endpoints."""
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        path = _PATH_PARAMETER.sub(r"{\1}", endpoint.path)
        paths.setdefault(path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {"title": "lrtflite serve", "version": __version__},
        "security": [{"token": []}, {}],
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    name = _PATH_PARAMETER.sub(r"by \1", f"{endpoint.method} {endpoint.path}")
    operation: dict[str, Any] = {
        "operationId": "_".join(re.findall(r"\w+", name)).lower(),
        "summary": endpoint.about,
        "parameters": [*_path_parameters(endpoint.path), *_query(endpoint)],
        "responses": {
            str(endpoint.status): {
                "description": endpoint.about,
                "content": _content(endpoint.answer),
            },
            **{str(status): _ERROR for status in (400, 401, 403, *endpoint.errors)},
        },
    }
    if endpoint.body:
        content = {kind: each for name in endpoint.body for kind, each in _content(name).items()}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


_ERROR = {"description": "A problem and advice.", "content": {JSON: {"schema": _ref("Error")}}}


def _content(name: str) -> dict[str, Any]:
    """Return the content of a schema, or of a type such as image/jpeg."""
    return {JSON: {"schema": _ref(name)}} if name in SCHEMAS else {name: {"schema": {}}}


def _path_parameters(path: str) -> list[dict[str, Any]]:
    return [
        {
            "name": match[1],
            "in": "path",
            "required": True,
            "schema": _WHOLE if match[2] == "slot" else _TEXT,
        }
        for match in _PATH_PARAMETER.finditer(path)
    ]


def _query(endpoint: Endpoint) -> list[dict[str, Any]]:
    return [
        {
            "name": each.name,
            "in": "query",
            "description": each.about,
            "schema": {"type": each.kind},
        }
        for each in endpoint.query
    ]
