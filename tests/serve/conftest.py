"""A server for each test, of the packaged bundle and a state of the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs the extra serve")
pytest.importorskip("httpx", reason="needs httpx")

from running_service import Running, running  # after the check

Serve = Callable[..., Running]


@pytest.fixture
def serving(demo: Path, tmp_path: Path) -> Iterator[Serve]:
    """Return `serving(**settings)`, which starts a server for the rest of the test."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(
            running(demo, options.pop("state", tmp_path / "state"), **options)
        )


@pytest.fixture
def served(serving: Serve) -> Running:
    return serving()


@pytest.fixture
def taught(served: Running) -> Running:
    """A server that knows red and blue."""
    served.teach("red")
    served.teach("blue")
    return served


def error_of(answer: Any) -> dict[str, Any]:
    error: dict[str, Any] = answer.json()["error"]
    return error
