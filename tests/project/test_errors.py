"""Every error for the user is in `lrtflite.errors`, where the simulator looks it up by name."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from lrtflite import errors
from lrtflite.errors import LrtfliteError
from lrtflite_firmware_sim.device.messages import Failed
from lrtflite_firmware_sim.device.process import raised_error

ROOT = Path(__file__).parents[2]
KINDS = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, LrtfliteError)
}


def test_no_other_file_defines_one() -> None:
    for folder in ("lrtflite", "converters", "firmware_sim", "cli", "serve"):
        for path in (ROOT / folder).rglob("*.py"):
            if path == ROOT / "lrtflite" / "errors.py":
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
                    assert not bases & set(KINDS), f"{path.relative_to(ROOT)}: {node.name}"


def test_the_tree_names_each_one() -> None:
    assert errors.__doc__ is not None
    drawn = [line.partition("── ")[2] for line in errors.__doc__.splitlines()]
    assert {"LrtfliteError", *(line.split()[0] for line in drawn if line)} == set(KINDS)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_an_error_of_the_device_arrives_as_what_it_is(kind: str) -> None:
    found = raised_error(Failed(kind, "Expected a whole state file"))
    assert type(found) is KINDS[kind]
    assert str(found) == "Expected a whole state file"
