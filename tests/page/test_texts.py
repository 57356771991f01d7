"""The English texts: each one is used, and each one that is used exists."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from page_server import Served

WEB = Path(__file__).parents[2] / "clients" / "web"
PATHS = """async () => {
    const { text } = await import('/text/en.js');
    const walk = (value, path) => typeof value === 'object'
        ? [path, ...Object.entries(value).flatMap(([key, x]) => walk(x, [...path, key]))]
        : [path];
    return walk(text, []).map(path => path.join('.'));
}"""


def test_texts_are_used_and_exist(serve: Callable[..., Served], visit: Any) -> None:
    paths = set(visit(serve().url, None).evaluate(PATHS))
    sources = [path for path in WEB.rglob("*.js") if path.parent.name != "text"]
    written = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    used = re.findall(r"\btext\.((?:\w+\.)*\w+)", written)
    assert [name for name in used if name not in paths and name != "length"] == []
    # A group is used as a whole where a word of the server or the camera chooses from it.
    chosen = [path for path in paths if any(starts(path, name) for name in used)]
    parents = [path for path in paths if any(starts(name, path) for name in used)]
    assert sorted(paths - {""} - set(chosen) - set(parents)) == []


def starts(path: str, group: str) -> bool:
    return path == group or path.startswith(f"{group}.")
