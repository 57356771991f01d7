"""The names of a head's tensors and rates occur only in converters/, never in a client."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from lrtflite.bundle.bundle import Bundle
from lrtflite_cli.options.rates import SHORT_FORMS
from lrtflite_converters.conversion.making import find_network
from lrtflite_converters.conversion.writing import split_network
from lrtflite_converters.request.options import Conversion
from lrtflite_converters.request.source import Source

ROOT = Path(__file__).parents[3]
CLIENTS = ("lrtflite", "firmware_sim", "cli")
# The training on the host has rates of the same names.
HOST = ROOT / "lrtflite" / "host"
# A rival is a whole learner in numpy, with rates of its own.
RIVALS = ROOT / "firmware_sim" / "lrtflite_firmware_sim" / "rivals"
# So have its command, and the reader of Keras files, whose layers have them.
HOST_FILES = {
    ROOT / "cli" / "lrtflite_cli" / "commands" / "train.py",
    ROOT / "cli" / "lrtflite_cli" / "options" / "train.py",
    ROOT / "cli" / "lrtflite_cli" / "terminal" / "training.py",
    ROOT / "lrtflite" / "files" / "keras.py",
}
# Two rates have options of their own on every command that trains.
EXEMPT = frozenset(SHORT_FORMS)


def is_client(path: Path) -> bool:
    """Return whether a file must not contain names from inside a head."""
    return not {HOST, RIVALS} & set(path.parents) and path not in HOST_FILES


SOURCES = [
    path for folder in CLIENTS for path in sorted((ROOT / folder).rglob("*.py")) if is_client(path)
]


def names_in_graphs(options: Conversion) -> set[str]:
    """Return the names of a bundle's tensors and rates, before conversion."""
    parts = split_network(find_network(Source(input_size=32)), options)
    saves = [part.signatures.get("save") for part in (parts.features, parts.head)]
    tensors = {name for save in saves if save is not None for name in save.outputs}
    return tensors | set(parts.training.rates)


@pytest.fixture(scope="module")
def names() -> frozenset[str]:
    manifest = Bundle.open(ROOT / "lrtflite" / "demo_bundle").manifest
    found = {*manifest.merging, *manifest.rates}
    assert {"cw", "past", "momentum"} <= found
    found |= names_in_graphs(Conversion(replay_layer="conv5_4/dw", classes=3, batch_size=4))
    assert {"trunk_lr", "moment_rate", "r_max", "d_max"} <= found
    found |= names_in_graphs(
        Conversion(adapt_moments=True, classes=3, batch_size=4, new_per_batch=2)
    )
    assert "adapt_rate" in found
    assert len(found) > 30
    return frozenset(found) - EXEMPT


def words(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield every identifier, attribute, keyword and whole string constant, with its line."""
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Name):
            yield line, node.id
        elif isinstance(node, ast.Attribute):
            yield line, node.attr
        elif isinstance(node, ast.arg):
            yield line, node.arg
        elif isinstance(node, ast.keyword) and node.arg is not None:
            yield node.value.lineno, node.arg
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield line, node.value
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield line, node.name
        elif isinstance(node, ast.alias):
            yield line, node.asname or node.name


def uses(text: str, names: frozenset[str]) -> list[tuple[int, str]]:
    return sorted({word for word in words(ast.parse(text)) if word[1] in names})


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_client_names_a_tensor_or_a_rate(path: Path, names: frozenset[str]) -> None:
    assert uses(path.read_text(encoding="utf-8"), names) == []


@pytest.mark.parametrize(
    "text",
    [
        "state.past",
        "state['past']",
        "run(momentum=1)",
        "past = 1",
        "def f(past): ...",
        "def past(): ...",
        "from x import past",
    ],
)
def test_every_way_to_name_one_is_noticed(text: str, names: frozenset[str]) -> None:
    assert len(uses(text, names)) == 1


def test_prose_may_use_the_words(names: frozenset[str]) -> None:
    assert uses('"""The past of a head, and its momentum."""  # past', names) == []
