"""The map of the project names only files and tables that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
TOPS = ("lrtflite", "converters", "firmware_sim", "cli", "serve", "tests", "examples", "docs")


def test_every_file_that_the_page_names_exists() -> None:
    named = {word for word in re.findall(r"`([\w./-]+)`", PAGE) if word.split("/")[0] in TOPS}
    files = {word for word in named if "/" in word}
    assert len(files) > 40
    assert [word for word in sorted(files) if not (ROOT / word).exists()] == []


def test_every_table_is_where_the_page_says() -> None:
    named = re.findall(r"`([A-Z]+)` in `([\w./]+)`", PAGE)
    assert len(named) == 13
    for table, path in named:
        assert re.search(rf"^{table}\b", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), (
            table
        )


def test_the_drawing_is_on_the_page_and_has_a_description() -> None:
    assert "(architecture.svg)" in PAGE
    drawing = (ROOT / "docs" / "architecture.svg").read_text(encoding="utf-8")
    assert "<desc" in drawing
    assert "prefers-color-scheme: dark" in drawing


def test_every_word_is_explained_once() -> None:
    words = re.findall(r"^\| ([\w ,]+) \|", PAGE.partition("## Words")[2], re.MULTILINE)
    assert len(words) == len(set(words)) > 20
