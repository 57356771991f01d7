"""Options whose choices are a table's names, and options that do not go with a model file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from lrtflite.errors import LrtfliteError
from lrtflite_cli.group import cli


def error_of(words: list[str]) -> str:
    """Return the error that the command ends with, which `lrtflite` prints in one line."""
    error = CliRunner().invoke(cli, words).exception
    assert isinstance(error, LrtfliteError), error
    return str(error)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("convert --strategy ldaa", "strategy .*, got 'ldaa'; did you mean 'lda'[?]"),
        ("convert --preset papers", "preset .*, got 'papers'; did you mean 'paper'[?]"),
        ("convert --codec zip", "codec .*, got 'zip'; choose one of these"),
        ("convert --network mobilenet_v3", "network .*; did you mean 'mobilenet_v[12]'[?]"),
        ("simulate --policy ballanced", "policy .*, got 'ballanced'; did you mean 'balanced'[?]"),
        ("simulate --rival icarll", "rival .*, got 'icarll'; did you mean 'icarl'[?]"),
    ],
)
def test_an_unknown_name_gets_a_suggestion(words: str, said: str) -> None:
    assert re.fullmatch(f"Expected a {said}", error_of(words.split()))


@pytest.mark.parametrize(
    "words",
    [
        "convert --input-size 96",
        "layers --network mobilenet_v2",
        "layers --alpha 0.5",
        "layers --input-size 96",
        "layers --classes 3",
    ],
)
def test_options_of_a_built_network_are_refused_beside_a_model(tmp_path: Path, words: str) -> None:
    model = tmp_path / "own.keras"
    model.touch()
    said = error_of([*words.split(), "--model", str(model)])
    assert f"Expected --model without {words.split()[1]}, got" in said
