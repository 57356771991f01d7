"""The cost of each replay layer, against the paper's tables."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lrtflite.host.cost import NetworkCost, network_cost
from lrtflite.host.mobilenet import mobilenet_v1

# Table "model_arch" of the paper's appendix: layer, neurons, ops, weights.
PAPER_LAYERS = """
Images 49152 - -
conv1 131072 3670016 896
conv2_1/dw 131072 1310720 320
conv2_1/sep 262144 8650752 2112
conv2_2/dw 65536 655360 640
conv2_2/sep 131072 8519680 8320
conv3_1/dw 131072 1310720 1280
conv3_1/sep 131072 16908288 16512
conv3_2/dw 32768 327680 1280
conv3_2/sep 65536 8454144 33024
conv4_1/dw 65536 655360 2560
conv4_1/sep 65536 16842752 65792
conv4_2/dw 16384 163840 2560
conv4_2/sep 32768 8421376 131584
conv5_1/dw 32768 327680 5120
conv5_1/sep 32768 16809984 262656
conv5_2/dw 32768 327680 5120
conv5_2/sep 32768 16809984 262656
conv5_3/dw 32768 327680 5120
conv5_3/sep 32768 16809984 262656
conv5_4/dw 32768 327680 5120
conv5_4/sep 32768 16809984 262656
conv5_5/dw 32768 327680 5120
conv5_5/sep 32768 16809984 262656
conv5_6/dw 8192 81920 5120
conv5_6/sep 16384 8404992 525312
conv6/dw 16384 163840 10240
conv6/sep 16384 16793600 1049600
pool6 1024 16384 0
fc7 50 51250 51250
"""
# Table "tradeoff": layer, computation % vs native rehearsal, pattern size.
PAPER_TRADEOFF = """
Images 100.00 49152
conv5_1/dw 59.261 32768
conv5_2/dw 50.101 32768
conv5_3/dw 40.941 32768
conv5_4/dw 31.781 32768
conv5_5/dw 22.621 32768
conv5_6/dw 13.592 8192
conv6/dw 9.012 16384
pool6 0.027 1024
"""


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.strip().splitlines()]


def table(tex: str, label: str) -> list[list[str]]:
    """Return the rows of the LaTeX table called `label`, without markup."""
    _, _, after = tex.partition(rf"\label{{{label}}}")
    body = after.partition(r"\midrule")[2]
    body = re.split(r"\\midrule|\\bottomrule", body)[0]
    body = re.sub(r"\\textbf\{([^}]*(?:\\%)?)\}", r"\1", body).replace(r"\_", "_")
    lines = [line for line in body.split(r"\\") if "&" in line]
    return [[cell.strip().replace(r"\%", "") for cell in line.split("&")] for line in lines]


@pytest.fixture(scope="module")
def cost() -> NetworkCost:
    return network_cost(mobilenet_v1(alpha=1.0, input_size=128, classes=50))


def assert_layers(cost: NetworkCost, expected: list[list[str]]) -> None:
    got = [
        [layer.name, str(layer.neurons), str(layer.ops), str(layer.weights)]
        for layer in cost.layers
    ]
    got[0] = ["Images", got[0][1], "-", "-"]
    assert got == expected


def assert_tradeoff(cost: NetworkCost, expected: list[list[str]]) -> None:
    by_name = {layer.name: layer for layer in cost.layers}
    for name, percent, size, *_ in expected:
        layer = by_name[name.lower()]
        decimals = len(percent.split(".")[1])
        assert f"{layer.computation:.{decimals}f}" == percent, name
        assert layer.neurons == int(size)


def test_every_row_of_the_papers_appendix(cost: NetworkCost) -> None:
    assert_layers(cost, rows(PAPER_LAYERS))


def test_computation_column_of_the_papers_trade_off(cost: NetworkCost) -> None:
    assert_tradeoff(cost, rows(PAPER_TRADEOFF))


def test_the_numbers_above_are_the_papers(cost: NetworkCost, shared: Path) -> None:
    tex = (shared / "paper" / "latent-replay.tex").read_text()
    layers, tradeoff = table(tex, "tab:model_arch"), table(tex, "tab:tradeoff")
    assert (len(layers), len(tradeoff)) == (30, 9)
    assert layers == rows(PAPER_LAYERS)
    assert [row[:3] for row in tradeoff] == rows(PAPER_TRADEOFF)


def test_totals(cost: NetworkCost) -> None:
    assert cost.ops == 187_090_994
    assert cost.weights == 3_247_282


def test_bytes_of_a_stored_pattern(cost: NetworkCost) -> None:
    by_name = {layer.name: layer.bytes_per_latent for layer in cost.layers}
    assert by_name["images"] == 128 * 128 * 3  # uint8
    assert by_name["conv5_4/dw"] == 32768 * 4  # 1500 of them: the guide's 196.6 MB
    assert by_name["pool6"] == 4096


def test_another_network_is_counted_from_its_own_shapes() -> None:
    cost = network_cost(mobilenet_v1(alpha=0.25, input_size=97, classes=0))
    by_name = {layer.name: layer for layer in cost.layers}
    assert "fc7" not in by_name
    assert by_name["conv1"].neurons == 49 * 49 * 8
    assert by_name["conv1"].ops == 49 * 49 * 8 * (27 + 1)
    assert by_name["conv2_2/dw"].neurons == 24 * 24 * 16  # odd sizes lose a row: (49 - 1) / 2
    assert by_name["pool6"].computation == 0.0
