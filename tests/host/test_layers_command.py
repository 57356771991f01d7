"""The output of `lrtflite layers`."""

from __future__ import annotations

import builtins
import json
from typing import Any

import pytest
from click.testing import CliRunner

from lrtflite.errors import ModelError
from lrtflite_cli.commands.layers import command


@pytest.fixture(scope="module")
def printed() -> str:
    result = CliRunner().invoke(command, [])
    assert result.exit_code == 0, result.output
    return result.output


def cells(output: str, layer: str) -> list[str]:
    (line,) = [line for line in output.splitlines() if line.split()[:1] == [layer]]
    return line.split()


def test_table_has_the_papers_digits(printed: str) -> None:
    assert cells(printed, "images") == ["images", "49,152", "-", "-", "49,152", "-", "100.000"]
    assert cells(printed, "conv5_4/dw") == [
        "conv5_4/dw",
        "32,768",
        "327,680",
        "5,120",
        "131,072",
        "2,048",
        "31.781",
    ]
    assert cells(printed, "pool6") == ["pool6", "1,024", "16,384", "0", "4,096", "-", "0.027"]
    assert cells(printed, "fc7") == ["fc7", "50", "51,250", "51,250", "-", "-", "-"]
    assert cells(printed, "total") == ["total", "187,090,994", "3,247,282"]


def test_footnote_tells_of_the_papers_other_total(printed: str) -> None:
    assert "3.35 M" in printed


def test_json_and_other_networks() -> None:
    arguments = ["--alpha", "0.25", "--input-size", "64", "--classes", "7", "--json"]
    record = json.loads(CliRunner().invoke(command, arguments).output)
    assert (record["alpha"], record["input_size"], record["classes"]) == (0.25, 64, 7)
    assert [layer["name"] for layer in record["layers"]][:2] == ["images", "conv1"]
    assert record["layers"][-1]["weights"] == 256 * 7 + 7
    assert record["total"]["ops"] == sum(layer["ops"] for layer in record["layers"])


def test_without_rich_the_table_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    plain_import = builtins.__import__

    def without_rich(name: str, *rest: Any) -> Any:
        if name.split(".")[0] == "rich":
            raise ImportError(name)
        return plain_import(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_rich)
    output = CliRunner().invoke(command, ["--alpha", "0.25", "--classes", "1"]).output
    assert cells(output, "pool6")[1] == "256"
    assert "3.35 M" not in output


def test_bad_input_is_refused() -> None:
    result = CliRunner().invoke(command, ["--input-size", "8"])
    assert isinstance(result.exception, ModelError)
    assert CliRunner().invoke(command, ["--classes", "0"]).exit_code == 2
    assert CliRunner().invoke(command, ["--alpha", "wide"]).exit_code == 2
