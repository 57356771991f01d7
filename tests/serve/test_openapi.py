"""The document describes the routes, and the guide lists them."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

from lrtflite_serve.http.answering import STATUS
from lrtflite_serve.http.openapi import SCHEMAS, document
from lrtflite_serve.http.routes import ENDPOINTS
from running_service import Running, frames_of

ROOT = Path(__file__).parents[2]


def references(found: Any) -> set[str]:
    """Return every $ref in a document."""
    if isinstance(found, dict):
        own = {found["$ref"]} if "$ref" in found else set()
        return own.union(*(references(value) for value in found.values()))
    return set().union(*map(references, found)) if isinstance(found, list) else set()


def test_the_document_is_served(served: Running) -> None:
    assert served.http.get("/api/openapi.json").json() == document(ENDPOINTS)


def test_the_document_is_valid() -> None:
    found = document(ENDPOINTS)
    if importlib.util.find_spec("openapi_spec_validator"):
        from openapi_spec_validator import validate  # type: ignore[import-not-found,unused-ignore]

        validate(found)
    assert found["openapi"].startswith("3.1")
    assert references(found) <= {f"#/components/schemas/{name}" for name in SCHEMAS}
    operations = [each for path in found["paths"].values() for each in path.values()]
    assert len(operations) == len(ENDPOINTS)
    names = [each["operationId"] for each in operations]
    assert len(set(names)) == len(names)
    for path, methods in found["paths"].items():
        for operation in methods.values():
            inside = [each["name"] for each in operation["parameters"] if each["in"] == "path"]
            assert inside == re.findall(r"\{(\w+)\}", path)
            assert all(each["schema"] for each in operation["parameters"])


def test_every_route_answers_as_it_is_documented(taught: Running) -> None:
    """Ask every GET without parameters, and compare the type of the answer with the document."""
    for path, methods in document(ENDPOINTS)["paths"].items():
        if "get" not in methods or "{" in path or path in ("/api/events", "/api/model"):
            continue
        query = "?slot=0" if path == "/api/pictures" else ""
        answer = taught.http.get(f"{path}{query}")
        responses = methods["get"]["responses"]
        assert str(answer.status_code) in responses, (path, answer.status_code)
        content = responses[str(answer.status_code)]["content"]
        assert answer.headers["content-type"].partition(";")[0] in content, path
        schema = content.get("application/json", {}).get("schema", {})
        name = schema.get("$ref", "").rpartition("/")[2]
        if SCHEMAS.get(name, {}).get("type") == "object":
            assert set(answer.json()) <= set(SCHEMAS[name]["properties"]), path


def test_answers_of_changes_are_documented(served: Running) -> None:
    result = served.teach("red", 2)
    assert set(result) == set(SCHEMAS["Learned"]["properties"])
    answer = served.predict(frames_of("red", 1)[0], "?stream=a")
    assert set(answer) <= set(SCHEMAS["Answer"]["properties"])
    lesson = served.http.post("/api/lessons", json={"label": "x"}).json()
    assert set(lesson) == set(SCHEMAS["Lesson"]["properties"])


def test_the_guide_lists_every_endpoint() -> None:
    page = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `([A-Z]+) (/api[^`?]*)", page, re.MULTILINE))
    routes = {(each.method, re.sub(r"\{(\w+)(:\w+)?\}", r"{\1}", each.path)) for each in ENDPOINTS}
    assert listed == routes


def test_the_guide_lists_every_status() -> None:
    page = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
    listed = {int(number) for number in re.findall(r"^\| (\d{3}) \|", page, re.MULTILINE)}
    assert listed == {*STATUS.values(), 401, 403, 405, 408, 415, 500}
