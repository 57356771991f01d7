"""Defaults of a bundle at each replay layer."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from lrtflite.networks.mobilenet_v1 import MOBILENET_V1, REPLAY_LAYERS
from lrtflite_cli.commands.convert import command
from lrtflite_converters.request.defaults import SplitPoint, sgd_feeding, sgd_rates
from lrtflite_converters.request.options import Conversion

QUICK = REPLAY_LAYERS[REPLAY_LAYERS.index("conv3_1/dw") :]
RESTING = ("conv6/sep", "pool6")
LAST = {"lr", "momentum", "weight_decay", "head_start"}
TRUNK = {"trunk_lr", "moment_rate", "rest_below", "r_max", "d_max"}


def test_help_names_the_rates_of_a_bundle() -> None:
    text = " ".join(CliRunner().invoke(command, ["--help"]).output.split())
    assert "default: (4; 2 below conv6/sep)" in text
    assert "default: (0.003 x 1024 / features)" in text
    assert "--rate NAME=VALUE" in text


@pytest.mark.parametrize("layer", REPLAY_LAYERS)
def test_every_layer_has_its_own(layer: str) -> None:
    options = Conversion(replay_layer=layer)
    assert options.minibatch == ((120, 20) if layer == "pool6" else (128, 21))
    assert options.memory == (1500, "algorithm1", "raw")
    training = options.training(1024)
    assert (training.feeding.batch_size, training.feeding.new_per_batch) == options.minibatch
    found = training.values
    assert (found["lr"], found["momentum"], found["weight_decay"]) == (0.003, 0.9, 0.0005)
    assert (found["least_steps"], found["head_start"]) == (24, 1.0)
    assert found["epochs"] == (4 if layer in RESTING else 2)
    # Every rate is an input of a signature.
    assert set(training.rates) == (LAST if layer in RESTING else LAST | TRUNK)
    if layer in RESTING:
        return
    assert (found["r_max"], found["d_max"]) == (3.0, 5.0)
    if layer in QUICK:
        assert (found["trunk_lr"], found["moment_rate"]) == (0.015, 0.03)
    else:
        assert (found["trunk_lr"], found["moment_rate"]) == (0.0003, 0.0001)


@pytest.mark.parametrize("layer", ["conv4_1/dw", "pool6"])
def test_moments_that_adapt_have_a_rate(layer: str) -> None:
    found = Conversion(replay_layer=layer, adapt_moments=True).training(1024)
    others = {"r_max", "d_max"} if layer == "pool6" else TRUNK
    assert set(found.rates) == {*LAST, *others, "adapt_rate"}
    assert found.values["adapt_rate"] == pytest.approx(1 - 0.99995)


def test_a_memory_of_its_own() -> None:
    assert Conversion(replay_size=0, policy="balanced").memory == (0, "balanced", "raw")
    # A closed form above a trunk is refitted from the memory, so each class has its share of it.
    deep = Conversion(replay_layer="conv5_4/dw", strategy="lda")
    assert deep.memory == (1500, "balanced", "raw")
    assert Conversion(strategy="lda").memory == (0, "algorithm1", "raw")


def test_native_rehearsal_has_the_rates_of_the_paper() -> None:
    found = sgd_rates(SplitPoint(MOBILENET_V1, "images"))
    assert found["trunk_lr"].value == 0.0003
    assert found["moment_rate"].value == pytest.approx(1 - 0.9999)


def test_a_narrow_network_has_a_larger_rate() -> None:
    options = Conversion(replay_layer="conv6/dw")
    wide, narrow = (options.training(features).values for features in (1024, 256))
    assert narrow["lr"] == pytest.approx(4 * wide["lr"])
    assert narrow["trunk_lr"] == wide["trunk_lr"]


def test_what_is_given_wins() -> None:
    given = {"lr": 0.5, "trunk_lr": 0.25, "epochs": 7}
    found = Conversion(replay_layer="conv6/dw", rates=given).training(256)
    assert {name: found.values[name] for name in given} == given
    assert found.least_steps == sgd_feeding(SplitPoint(MOBILENET_V1, "conv6/dw")).least_steps


@pytest.mark.parametrize(
    ("layer", "strategy", "extra"),
    [
        ("pool6", "cwr", (100, 0.01)),
        ("conv6/sep", "cwr", (100, 0.01)),
        ("pool6", "ewc", (0, 0.0)),
        ("pool6", "lwf", (0, 0.0)),
        ("pool6", "naive", (0, 0.0)),
        ("pool6", "lda", (0, 0.0)),
        ("conv5_6/dw", "ar1free", (100, 0.01)),
        ("conv5_6/dw", "ar1", (100, 0.01)),
        ("conv3_1/dw", "ar1free", (100, 0.01)),
        ("conv2_2/sep", "ar1free", (0, 0.0)),
        ("images", "ar1free", (0, 0.0)),
        ("conv5_6/dw", "naive", (0, 0.0)),
        ("conv5_6/dw", "lda", (0, 0.0)),
    ],
)
def test_a_session_goes_on_until_it_has_been_learned(
    layer: str, strategy: str, extra: tuple[int, float]
) -> None:
    found = Conversion(replay_layer=layer, strategy=strategy).training(1024).feeding
    assert (found.extra_steps, found.enough_loss) == extra


def test_chosen_epochs_are_exact() -> None:
    found = Conversion(rates={"epochs": 7}).training(1024).feeding
    assert (found.epochs, found.extra_steps) == (7, 0)
    patient = Conversion(rates={"epochs": 7, "extra_steps": 9}).training(1024).feeding
    assert (patient.extra_steps, patient.enough_loss) == (9, 0.01)
