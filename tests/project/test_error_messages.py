"""Every error for the user says what to do."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lrtflite import errors
from lrtflite.errors import LrtfliteError

ROOT = Path(__file__).parents[2]
FOLDERS = ("lrtflite", "converters", "firmware_sim", "cli", "serve")
KINDS = {
    name
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, LrtfliteError)
}
# A constant text with advice after "; ", or a message that ends with a variable part after "; ".
ADVICE = re.compile(r"; (\w|`|\{)")
# A range that says everything: "at least 1", "0 to 9", or the limits of `lrtflite.arguments`.
RANGE = re.compile(
    r"^Expected [^;]*(at least|at most|from \S+ to|\d+( \([^)]*\))? to|\{_limits\()"
    r"[^;]*, got [^;]+$"
)
# Errors whose text comes from elsewhere, by file and the message in the source.
EXEMPT = {
    # The message of another error, which has the advice.
    ("converters/lrtflite_converters/tflite/convert.py", "{_explain(error)}"),
    ("lrtflite/host/training/options.py", "{error} (--freeze-below)"),
    ("cli/lrtflite_cli/commands/simulate.py", "{line}"),
}


def message(call: ast.Call) -> str:
    """Return the problem and the advice of an error, with variable parts in braces."""
    return "; ".join(map(text_of, call.args))


def text_of(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(text_of, node.values))
    if isinstance(node, ast.FormattedValue):
        return f"{{{ast.unparse(node.value)}}}"
    if isinstance(node, ast.BinOp):
        return text_of(node.left) + text_of(node.right)
    if isinstance(node, ast.IfExp):
        # Both texts have to say what to do, so the poorer one counts.
        return min(text_of(node.body), text_of(node.orelse), key=has_advice)
    return f"{{{ast.unparse(node)}}}"


def has_advice(text: str) -> bool:
    """Return whether a text says what to do; a range says everything."""
    return ADVICE.search(text) is not None or RANGE.search(text) is not None


def without_advice(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and text of each error that is made without advice."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in KINDS:
            text = message(node)
            if not has_advice(text):
                yield node.lineno, text


def sources() -> list[Path]:
    return [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]


def test_every_error_says_what_to_do() -> None:
    offenders = []
    for path in sources():
        name = path.relative_to(ROOT).as_posix()
        for line, text in without_advice(ast.parse(path.read_text(encoding="utf-8"))):
            if (name, text) not in EXEMPT:
                offenders.append((name, line, text))
    assert offenders == []


def test_exemptions_are_needed() -> None:
    for name, text in EXEMPT:
        tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
        assert text in [found for _, found in without_advice(tree)], name


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('InputError("Expected a, got b")', ["Expected a, got b"]),
        ('InputError("Expected a, got b; do c")', []),
        ('InputError("Expected a, got b", "do c")', []),
        ('InputError("Expected a, got b", advice)', []),
        ('InputError(f"Expected a, got {b}; " f"{advice}")', []),
        ('errors.StateError(f"Cannot read {path}: {error}")', ["Cannot read {path}: {error}"]),
        ('DataError("Expected a" + (", got b" if x else "; do c"))', ["Expected a, got b"]),
        ('ValueError("Expected a, got b")', []),
    ],
)
def test_errors_without_advice_are_noticed(source: str, found: list[str]) -> None:
    assert [text for _, text in without_advice(ast.parse(source))] == found
