"""Commands of benchmarks in the documents: their scripts exist and have the options they use."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
# Up to the end of the code: a backtick, or the end of an indented line.
COMMAND = re.compile(
    r"`python\s+benchmarks/(\w+)\.py([^`]*)`|^ {4}python benchmarks/(\w+)\.py(.*)$", re.M
)


def commands(page: Path) -> list[tuple[str, str]]:
    return [(a or c, b or d) for a, b, c, d in COMMAND.findall(page.read_text("utf-8"))]


def test_there_are_commands() -> None:
    assert sum(len(commands(page)) for page in PAGES) > 15


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_scripts_have_the_options(page: Path) -> None:
    for script, words in commands(page):
        source = (ROOT / "benchmarks" / f"{script}.py").read_text("utf-8")
        for option in re.findall(r"(?<!\S)--[a-z-]+", words):
            assert f'"{option}"' in source, f"{script}.py has no {option}"
