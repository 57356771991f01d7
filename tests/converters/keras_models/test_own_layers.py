"""Replay layers and options that a user's own model does not allow; the list of its layers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tf_keras as keras
from click.testing import CliRunner

from lrtflite.errors import ModelError
from lrtflite_cli.commands.layers import command
from lrtflite_converters.conversion.writing import split_network
from lrtflite_converters.request.options import Conversion
from own_models import joined, nested, plain, saved


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ("top_cnov", "got 'top_cnov'; did you mean 'top_conv'"),
        ("inner_conv", r"swish \(Activation\) cannot train .* choose 'swish' or a higher layer"),
        ("answers", "below the classifier, got 'answers'; choose 'pooled'"),
    ],
)
def test_a_replay_layer_that_cannot_be(layer: str, message: str, tmp_path: Path) -> None:
    network = saved(nested(), tmp_path / "own.keras")
    assert network.architecture.usable == ("swish", "top_conv", "pooled")
    with pytest.raises(ModelError, match=message):
        Conversion(architecture=network.architecture, replay_layer=layer)


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ("main", "ends a unit and that all paths go through, got 'main'; choose 'sum'"),
        ("logits", "below the classifier"),
    ],
)
def test_a_layer_inside_a_unit(layer: str, message: str, tmp_path: Path) -> None:
    network = saved(joined(), tmp_path / "own.keras")
    with pytest.raises(ModelError, match=message):
        Conversion(architecture=network.architecture, replay_layer=layer)


def test_a_layer_that_does_nothing_names_the_one_below(tmp_path: Path) -> None:
    network = saved(plain(), tmp_path / "own.keras")
    with pytest.raises(ModelError, match="only passes on its input; choose 'hidden'"):
        Conversion(architecture=network.architecture, replay_layer="dropout")


@pytest.mark.parametrize(
    ("build", "given", "message"),
    [
        (plain, {"replay_layer": "flat", "pooled": True}, "whose output is a vector"),
        (plain, {"replay_layer": "halved", "adapt_moments": True}, "none; leave --adapt-moments"),
        (nested, {"replay_layer": "pooled", "adapt_moments": True}, "without --adapt-moments"),
        (plain, {"replay_layer": "halved", "rates": {"r_max": 2.0}}, "got 'r_max', which is for"),
    ],
)
def test_options_that_a_model_does_not_allow(
    build: Callable[..., Any], given: dict[str, Any], message: str, tmp_path: Path
) -> None:
    network = saved(build(), tmp_path / "own.keras")
    with pytest.raises(ModelError, match=message):
        split_network(network, Conversion(architecture=network.architecture, **given))


def test_a_model_that_ends_with_an_image_is_averaged(tmp_path: Path) -> None:
    layers = keras.layers
    images = keras.Input((16, 16, 3))
    x = layers.Conv2D(4, 3, name="average", activation="relu")(layers.Rescaling(1 / 255)(images))
    network = saved(keras.Model(images, x), tmp_path / "own.keras")
    assert network.architecture.usable[1:] == ("average", "average_of_all")
    assert network.features() == 4
    assert not network.architecture.dropped


def test_a_last_layer_with_relu_stays(tmp_path: Path) -> None:
    layers = keras.layers
    model = keras.Sequential([keras.Input((16, 16, 3)), layers.Rescaling(1.0), layers.Flatten()])
    model.add(layers.Dense(5, activation="relu", name="embedding"))
    network = saved(model, tmp_path / "own.keras")
    assert (network.architecture.pooled, network.architecture.dropped) == ("embedding", ())


def test_the_costs_are_listed(tmp_path: Path) -> None:
    nested().save(tmp_path / "own.keras")
    done = CliRunner().invoke(command, ["--model", str(tmp_path / "own.keras"), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert [row["name"] for row in found["layers"]] == ["swish", "top_conv", "pooled"]
    assert "swish (Activation) cannot train" in found["below"]
    done = CliRunner().invoke(command, ["--model", str(tmp_path / "own.keras")])
    assert "No layer below swish" in done.stdout
