"""The project's prose keeps the rules that a test can check."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = (
    "lrtflite",
    "converters",
    "firmware_sim",
    "cli",
    "serve",
    "tests",
    "benchmarks",
    "examples",
)
PAGES = ("docs", "examples")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
# A docstring is a verb phrase, or a noun phrase for a class or module.
RELATIVE = re.compile(r"(What|How|Where|Whether)\b")
UNUSUAL = re.compile(r"\b(anew|shall|lately|proves\s+itself)\b", re.IGNORECASE)


def python_files() -> list[Path]:
    return [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]


def texts() -> list[Path]:
    """Return all files with prose except this one, which has to name the words."""
    pages = [page for folder in PAGES for page in sorted((ROOT / folder).rglob("*.md"))]
    every = [*python_files(), *pages, *sorted(ROOT.glob("*.md"))]
    return [path for path in every if path != Path(__file__)]


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def relative_docstrings(source: str) -> Iterator[str]:
    """Yield the first line of each docstring that begins with What, How, Where or Whether."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED):
            docstring = ast.get_docstring(node) or ""
            if RELATIVE.match(docstring):
                yield docstring.partition("\n")[0]


def comments_with_of(source: str) -> Iterator[str]:
    """Yield each comment that begins with "Of ", unless it continues the comment above it."""
    comment_row = -1  # of the last line that is all comment
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, whole_line = token.start[0], token.line.lstrip().startswith("#")
            continues = whole_line and row == comment_row + 1
            if re.match(r"#\s*Of ", token.string) and not continues:
                yield token.string
            comment_row = row if whole_line else -1


def offenders(paths: list[Path], rule: Callable[[str], Iterable[str]]) -> dict[str, list[str]]:
    """Return the breaches of a rule by file, without the files that keep it."""
    breaches = {name(path): list(rule(path.read_text(encoding="utf-8"))) for path in paths}
    return {file: lines for file, lines in breaches.items() if lines}


def unusual_words(text: str) -> list[str]:
    return [word.group() for word in UNUSUAL.finditer(text)]


def test_docstrings_are_not_relative_clauses() -> None:
    assert offenders(python_files(), relative_docstrings) == {}


def test_comments_begin_with_a_noun() -> None:
    assert offenders(python_files(), comments_with_of) == {}


def test_everyday_words() -> None:
    # Help texts are strings in Python files.
    assert offenders(texts(), unusual_words) == {}


def test_unusual_words_are_noticed() -> None:
    assert unusual_words("Begin anew, lately.") == ["anew", "lately"]


def test_relative_clauses_are_noticed() -> None:
    source = '"""What a module does."""\n\n\ndef f():\n    """However it is."""\n'
    assert list(relative_docstrings(source)) == ["What a module does."]


def test_comments_with_of_are_noticed() -> None:
    source = "# Of latents.\nx = 1  # of x\n# A sentence about the number\n# Of latents.\n"
    assert list(comments_with_of(source)) == ["# Of latents."]
