"""The paper's values, typed from the paper and not from the code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lrtflite.errors import InputError, ModelError
from lrtflite.networks.architecture import Architecture
from lrtflite.networks.mobilenet_v1 import MOBILENET_V1
from lrtflite_converters.request.foreign import check_foreign
from lrtflite_converters.request.options import Conversion, ConvertOptions
from lrtflite_converters.request.presets import PRESETS
from lrtflite_converters.request.source import Source


def values(layer: str, strategy: str | None = None, **options: object) -> dict[str, float]:
    chosen = Conversion(
        replay_layer=layer,
        strategy=strategy,
        preset="paper",
        **options,  # type: ignore[arg-type]
    )
    # A narrow network: the paper's rates do not depend on the width, ours do.
    return chosen.training(256).values


def test_latent_replay_as_in_the_paper() -> None:
    found = values("conv5_4/dw")
    assert found == {
        "epochs": 4,
        "least_steps": 1,
        "most_steps": 1_000_000,
        "extra_steps": 0,
        "enough_loss": 0.0,
        "lr": 0.003,
        "trunk_lr": 0.0003,
        "first_lr": 0.001,
        "first_trunk_lr": 0.001,
        "momentum": 0.9,
        "weight_decay": 0.0005,
        "head_start": 0.0,
        "rest_below": 1.0,
        "moment_rate": pytest.approx(1 - 0.99995),
        "r_max": 1.25,
        "d_max": 0.5,
    }
    options = Conversion(replay_layer="conv5_4/dw", preset="paper")
    assert options.minibatch == (128, 21)
    assert options.memory == (1500, "algorithm1", "raw")


def test_native_rehearsal_and_the_last_layer_alone() -> None:
    assert values("images")["moment_rate"] == pytest.approx(1 - 0.9999)
    found = values("pool6")
    assert (found["lr"], found["first_lr"], found["head_start"]) == (0.003, 0.001, 0.0)
    assert "first_trunk_lr" not in found
    assert Conversion(preset="paper").minibatch == (128, 21)
    adapting = values("pool6", adapt_moments=True)
    assert adapting["adapt_rate"] == pytest.approx(1 - 0.99995)
    assert (adapting["r_max"], adapting["d_max"]) == (1.25, 0.5)


def test_strategies_with_values_of_their_own() -> None:
    ar1 = values("conv5_4/dw", "ar1")
    assert (ar1["max_f"], ar1["importance_rate"], ar1["protection"]) == (0.001, 0.5, 1.0)
    assert ar1["penalty"] == 0.0
    # EWC adds up the whole Fisher information of each session: w belongs to Synaptic Intelligence.
    assert values("pool6", "ewc")["importance_rate"] == 1.0
    assert values("conv5_4/dw", "ewc")["importance_rate"] == 1.0
    assert values("pool6", "dslda")["shrinkage"] == 1e-4


def test_a_rate_replaces_the_preset_and_the_preset_the_default() -> None:
    assert values("pool6", rates={"lr": 0.5})["lr"] == 0.5
    assert Conversion(preset="paper", batch_size=64).minibatch == (64, 10)


def test_what_does_not_fit_is_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"paper, best, got 'papers'; did you mean 'paper'"):
        Conversion(preset="papers")
    with pytest.raises(ModelError, match=r"cwr, ar1free.* with --preset paper, got 'lda'; leave"):
        Conversion(preset="paper", strategy="lda")
    with pytest.raises(ModelError, match="no --pooled with --preset paper"):
        Conversion(preset="paper", replay_layer="conv5_6/sep", pooled=True)


def best(architecture: Architecture = MOBILENET_V1, **options: Any) -> Conversion:
    return ConvertOptions(preset="best", **options).at(architecture)


def test_the_best_preset_chooses_layers_and_crops() -> None:
    found = best()
    chosen = (found.strategy_name, found.layer, found.and_layer, found.crops)
    assert chosen == ("lda", "pool6", "conv5_6/sep", True)
    assert found.memory[0] == 0
    assert found.training(2048) == Conversion(strategy="lda").training(2048)
    # A network that no study has a second layer for.
    other = best(replace(MOBILENET_V1, second_layer=""))
    assert (other.and_layer, other.crops) == (None, True)
    # Equal to what it chooses, or beside it.
    assert best(strategy="lda", replay_layer="pool6", replay_size=100).memory[0] == 100


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"strategy": "cwr"}, "no --strategy cwr with --preset best, which chooses lda"),
        ({"replay_layer": "conv5_4/dw"}, "no --replay-layer conv5_4/dw with --preset best"),
        ({"and_layer": "conv5_4/sep"}, "no --and conv5_4/sep with --preset best"),
        ({"pooled": True}, "between images and pool6 with --pooled"),
        ({"adapt_moments": True}, "without --adapt-moments"),
    ],
)
def test_what_the_best_preset_chooses_is_not_given_too(options: Any, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        best(**options)


def test_a_foreign_model_has_no_best_preset() -> None:
    with pytest.raises(ModelError, match="no --preset best with --features"):
        check_foreign(ConvertOptions(preset="best"))


def test_frames_of_the_best_preset_are_larger_unless_a_size_is_given() -> None:
    size = PRESETS.choose("best").input_size
    assert Source().side == 128
    assert Source().with_default_size(size).side == 192
    assert Source(input_size=128).with_default_size(size).side == 128
    assert Source().with_default_size(PRESETS.choose("paper").input_size).side == 128
