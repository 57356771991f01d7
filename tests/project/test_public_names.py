"""Public names: each is complete and loads on its own, and documents use no others."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "lrtflite": ROOT / "lrtflite",
    "lrtflite.data": ROOT / "lrtflite" / "data",
    "lrtflite.advice": ROOT / "lrtflite" / "advice",
    "lrtflite.pictures": ROOT / "lrtflite" / "pictures",
    "lrtflite_converters": ROOT / "converters" / "lrtflite_converters",
    "lrtflite_firmware_sim": ROOT / "firmware_sim" / "lrtflite_firmware_sim",
}
LAZY = ("lrtflite", "lrtflite_converters", "lrtflite_firmware_sim")
# An import of ours, in a fenced or an indented block of code.
IMPORT = re.compile(
    r"^ *(?:import lrtflite[\w.]*|from lrtflite[\w.]* import (?:\([^)]*\)|[\w, ]+))(?: *#.*)?$",
    re.M,
)


def tree_of(package: str) -> ast.Module:
    return ast.parse((PACKAGES[package] / "__init__.py").read_text(encoding="utf-8"))


def constant(package: str, name: str) -> object:
    """Return the value of a constant of a package."""
    for node in tree_of(package).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return ast.literal_eval(node.value)
    raise LookupError(f"{package} has no {name}")


def public(package: str) -> list[str]:
    names = constant(package, "__all__")
    assert isinstance(names, list)
    return names


def imported(package: str) -> dict[str, str]:
    """Return the names that a package imports from its own modules, with these modules."""
    return {
        alias.asname or alias.name: str(node.module)
        for node in ast.walk(tree_of(package))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(f"{package}.")
        for alias in node.names
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_all_is_complete(package: str) -> None:
    assert public(package) == sorted(imported(package))
    # Some names of the converter load TensorFlow, which must stay out of this process.
    if package != "lrtflite_converters":
        module = importlib.import_module(package)
        assert [name for name in public(package) if getattr(module, name) is None] == []


@pytest.mark.parametrize("package", LAZY)
def test_names_are_imported_from_where_type_checkers_find_them(package: str) -> None:
    homes = constant(package, "_HOMES")
    assert isinstance(homes, dict)
    assert {name: f"{package}.{home}" for name, home in homes.items()} == imported(package)


def uses(text: str) -> Iterator[tuple[str, str]]:
    """Yield the modules of ours that Python code imports, with the names taken from each."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "*") for alias in node.names if alias.name[:8] == "lrtflite")
        elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("lrtflite"):
            yield from ((str(node.module), alias.name) for alias in node.names)


def internal(text: str) -> list[str]:
    """Return the imports of what is not public."""
    return [
        f"{module}: {name}"
        for module, name in uses(text)
        if module not in PACKAGES or (name != "*" and name not in public(module))
    ]


def code_of(page: str) -> str:
    """Return the imports of ours in a page's blocks of code."""
    return "\n".join(textwrap.dedent(found) for found in IMPORT.findall(page))


def documents() -> Iterator[tuple[Path, str]]:
    for path in sorted((ROOT / "examples").glob("*.py")):
        yield path, path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        yield path, code_of(path.read_text(encoding="utf-8"))


def test_documents_import_public_names_only() -> None:
    found = {path.relative_to(ROOT).as_posix(): internal(text) for path, text in documents()}
    assert {name: names for name, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("```python\nfrom lrtflite.state.folder import read_state\n```", 1),
        ("Text:\n\n    from lrtflite import (\n        Learner,\n        Checkpoint,\n    )\n", 1),
        ("    import lrtflite.learner\n", 1),
        ("    import lrtflite\n    from lrtflite import Learner\n    from numpy import array\n", 0),
        ("import lrtflite is short", 0),
    ],
)
def test_internal_imports_are_noticed(page: str, expected: int) -> None:
    assert len(internal(code_of(page))) == expected


@pytest.mark.parametrize(
    ("script", "absent"),
    [
        # A program that only wants the version or an error does not pay for the learner.
        ("import lrtflite; lrtflite.LrtfliteError", "numpy"),
        ("import lrtflite_converters.request.options", "tensorflow"),
        ("from lrtflite_converters import ConvertOptions, Source", "tensorflow"),
    ],
)
def test_an_import_loads_what_it_needs(script: str, absent: str) -> None:
    script += f"; import sys; sys.exit({absent!r} in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
