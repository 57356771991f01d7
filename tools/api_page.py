"""The page docs/api.md: signatures and docstrings of the public names, read without importing them.

Reading the sources keeps the page independent of what is installed, TensorFlow above all.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Union

ROOT = Path(__file__).resolve().parent.parent
SOURCE_FOLDERS = (ROOT, ROOT / "converters", ROOT / "firmware_sim", ROOT / "cli")
INTRODUCTION = """\
# Python reference

Signatures and docstrings of the public names. [What a session does](learning.md) explains learning;
[Architecture](architecture.md#to-add-something) explains how to add something of your own.
"""
Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]
Definition = Union[ast.ClassDef, Function, ast.Assign, ast.AnnAssign]


@dataclass(frozen=True)
class Section:
    """A part of the page: names of one module, or all of a package's `__all__`."""

    title: str
    module: str
    names: tuple[str, ...] = ()


SECTIONS = (
    Section("The learner", "lrtflite"),
    Section("Data sets", "lrtflite.data"),
    Section("Advice", "lrtflite.advice"),
    Section("Kept pictures", "lrtflite.pictures"),
    Section("The converter", "lrtflite_converters"),
    Section("The simulated device", "lrtflite_firmware_sim"),
    Section("Tables", "lrtflite.tables.table", ("Table",)),
    Section("Policies", "lrtflite.replay.policies", ("Policy", "Stored", "Incoming", "Placement")),
    Section("Codecs", "lrtflite.replay.codecs", ("Codec", "LatentForm")),
    Section("Networks", "lrtflite.networks.architecture", ("Architecture",)),
    Section("Networks on the host", "lrtflite.host.network", ("Network",)),
    Section("Strategies", "lrtflite_converters.request.strategies", ("Strategy",)),
    Section("Heads", "lrtflite_converters.heads.head", ("Head", "HeadPlan")),
    Section(
        "Regularisers", "lrtflite_converters.training.regularisers.regulariser", ("Regulariser",)
    ),
    Section("Blocks", "lrtflite_converters.blocks.block", ("Block", "Trace", "BlockInput", "Step")),
)


def api_page() -> str:
    """Return the whole page."""
    parts = [INTRODUCTION]
    for section in SECTIONS:
        parts.append(f"## {section.title}\n\n`{section.module}`\n")
        for name in section.names or offered(section.module):
            parts.append(f"### {name}\n")
            parts.extend(described(section.module, name))
    return "\n".join(parts)


def offered(module: str) -> list[str]:
    """Return the `__all__` of a package."""
    for node in parsed(module).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return names
    raise LookupError(f"Expected __all__ in {module}, got none; add it")


def described(module: str, name: str) -> Iterator[str]:
    """Yield the paragraphs about one name."""
    home, node, note = find(module, name)
    lines = source_of(home).read_text(encoding="utf-8").splitlines()
    if isinstance(node, ast.ClassDef):
        yield from class_paragraphs(node, lines)
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield code(signature(node, lines))
        yield from prose(ast.get_docstring(node))
    else:
        yield code("\n".join(lines[node.lineno - 1 : node.end_lineno]))
        yield from prose(note)


def find(module: str, name: str) -> tuple[str, Definition, str | None]:
    """Return the module that defines a name, its definition, and the string after an alias."""
    body = parsed(module).body
    for place, node in enumerate(body):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.name == name:
                return module, node, None
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if ast.unparse(target) == name:
                return module, node, string(body[place + 1]) if place + 1 < len(body) else None
    # `ast.walk`, because some imports are for type checkers only.
    for found in ast.walk(parsed(module)):
        if isinstance(found, ast.ImportFrom) and name in [alias.name for alias in found.names]:
            return find(str(found.module), name)
    raise LookupError(f"Expected {name} in {module}, got none; change SECTIONS")


def string(node: ast.stmt) -> str | None:
    """Return the text of a statement that is a string alone."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return node.value.value if isinstance(node.value.value, str) else None
    return None


def class_paragraphs(node: ast.ClassDef, lines: list[str]) -> Iterator[str]:
    """Yield the head of a class with its fields, its docstring, and its public methods."""
    decorators = [f"@{ast.unparse(each)}" for each in node.decorator_list]
    bases = ", ".join(map(ast.unparse, node.bases))
    first = f"class {node.name}({bases}):" if bases else f"class {node.name}:"
    # Whole lines, for the comments at their ends.
    fields = [
        line
        for each in node.body
        if isinstance(each, ast.AnnAssign) and not ast.unparse(each.target).startswith("_")
        for line in lines[each.lineno - 1 : each.end_lineno]
    ]
    yield code("\n".join([*decorators, first, *fields]))
    yield from prose(ast.get_docstring(node))
    for each in node.body:
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)) and is_public(each.name):
            yield code(signature(each, lines))
            yield from prose(ast.get_docstring(each))


def is_public(name: str) -> bool:
    return name == "__init__" or not name.startswith("_")


def signature(node: Function, lines: list[str]) -> str:
    """Return the decorators and the `def` of a function as they are written."""
    first = min(each.lineno for each in (node, *node.decorator_list)) - 1
    body = node.body[0]
    # The body of a protocol's method, `...`, may be on the same line.
    same_line = lines[body.lineno - 1][: body.col_offset].strip()
    whole = [*lines[first : body.lineno - 1], *([same_line] if same_line else [])]
    return textwrap.dedent("\n".join(whole)).strip().removesuffix(":")


def code(text: str) -> str:
    return f"```python\n{text}\n```\n"


def prose(docstring: str | None) -> Iterator[str]:
    """Yield a docstring as Markdown, the entries below `Attributes:` as a list."""
    if docstring is None:
        return
    text = re.sub(r"^    (\w+): ", r"- `\1`: ", docstring.strip(), flags=re.M)
    text = re.sub(r"^(Attributes|Args):\n", r"\1:\n\n", text, flags=re.M)
    yield re.sub(r"^ {5,}", "  ", text, flags=re.M) + "\n"


def parsed(module: str) -> ast.Module:
    return ast.parse(source_of(module).read_text(encoding="utf-8"))


def source_of(module: str) -> Path:
    """Return the file of a module of this project."""
    path = Path(*module.split("."))
    for folder in SOURCE_FOLDERS:
        for file in (folder / path.with_suffix(".py"), folder / path / "__init__.py"):
            if file.exists():
                return file
    raise LookupError(f"Expected a module of this project, got {module}; change SECTIONS")
