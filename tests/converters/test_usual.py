"""What a bundle of each replay layer is told to do when nobody says."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from lrtflite_converters.usual import usual_training

from lrtflite.layer_names import REPLAY_LAYERS
from lrtflite_cli.convert import command
from lrtflite_converters.options import ExportOptions

QUICK = REPLAY_LAYERS[REPLAY_LAYERS.index("conv3_1/dw") :]


def test_help_names_the_rates_of_a_bundle() -> None:
    text = " ".join(CliRunner().invoke(command, ["--help"]).output.split())
    assert "default: (4; 2 below conv6/sep)" in text
    assert "default: (0.003 x 1024 / features)" in text
    assert "default: (0.015; 0.0003 below conv3_1/dw)" in text


@pytest.mark.parametrize("layer", REPLAY_LAYERS)
def test_every_layer_has_its_own(layer: str) -> None:
    options = ExportOptions(replay_layer=layer)
    assert options.minibatch == ((120, 20) if layer == "pool6" else (128, 21))
    assert options.memory == (1500, "algorithm1")
    found = options.training(1024)
    assert (found.lr, found.momentum, found.weight_decay) == (0.003, 0.9, 0.0005)
    assert (found.least_steps, found.head_start) == (24, 1.0)
    assert found.epochs == (4 if layer in ("conv6/sep", "pool6") else 2)
    if layer in QUICK:
        assert (found.trunk_lr, found.moment_rate) == (0.015, 0.03)
    else:
        assert (found.trunk_lr, found.moment_rate) == (0.0003, 0.0001)


def test_a_memory_of_its_own() -> None:
    assert ExportOptions(replay_size=0, policy="balanced").memory == (0, "balanced")


def test_native_rehearsal_has_the_rates_of_the_paper() -> None:
    found = usual_training("images")
    assert found.trunk_lr == 0.0003
    assert found.moment_rate == pytest.approx(1 - 0.9999)


def test_a_narrow_network_has_a_larger_rate() -> None:
    wide, narrow = (ExportOptions().training(features) for features in (1024, 256))
    assert narrow.lr == pytest.approx(4 * wide.lr)
    assert narrow.trunk_lr == wide.trunk_lr


def test_what_is_given_wins() -> None:
    options = ExportOptions(replay_layer="conv6/dw", lr=0.5, trunk_lr=0.25, epochs=7)
    training = options.training(256)
    assert (training.lr, training.trunk_lr, training.epochs) == (0.5, 0.25, 7)
    assert training.least_steps == usual_training("conv6/dw").least_steps
