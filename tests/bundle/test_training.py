"""The numbers of a training: named, limited, and fed to the signatures that take them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from learning import DEFAULTS
from lrtflite import Training
from lrtflite.errors import InputError

TRAINING = DEFAULTS.with_options(
    lr=0.5, momentum=0.25, weight_decay=0.125, trunk_lr=2.0, moment_rate=0.75
)


def test_a_signature_gets_exactly_the_rates_that_it_lists() -> None:
    last_layer = {"latents": 0, "targets": 0, "lr": 0, "momentum": 0, "weight_decay": 0}
    assert TRAINING.scalars(last_layer) == {"lr": 0.5, "momentum": 0.25, "weight_decay": 0.125}
    deeper = {**last_layer, "trunk_lr": 0, "moment_rate": 0}
    all_five = {**TRAINING.scalars(last_layer), "trunk_lr": 2.0, "moment_rate": 0.75}
    assert TRAINING.scalars(deeper) == all_five
    assert TRAINING.scalars({"counts": 0, "head_start": 0}) == {"head_start": 1.0}
    assert TRAINING.scalars(()) == {}
    assert all(
        value.dtype == np.float32 and value.shape == (1,)
        for value in TRAINING.scalars(deeper).values()
    )


def test_epochs_are_a_scalar_too() -> None:
    found = TRAINING.with_options(epochs=7).scalars(("frames", "adapt_rate", "epochs"))
    assert found == {"adapt_rate": np.float32(5e-5), "epochs": 7}
    assert found["epochs"].dtype == np.float32


def test_options_that_are_given_win() -> None:
    changed = TRAINING.with_options(trunk_lr=0.0, epochs=3, momentum=None)
    assert (changed.values["lr"], changed.values["trunk_lr"], changed.epochs) == (0.5, 0.0, 3)
    assert changed.values["momentum"] == 0.25
    assert TRAINING.with_options() == TRAINING


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"lr": -1.0}, "lr as a number of at least 0, got -1.0"),
        ({"lr": float("nan")}, "lr"),
        ({"trunk_lr": -0.1}, "trunk_lr as a number of at least 0, got -0.1"),
        ({"trunk_lr": float("inf")}, "trunk_lr"),
        ({"moment_rate": 1.5}, "moment_rate as a number from 0 to 1, got 1.5"),
        ({"moment_rate": "x"}, "moment_rate"),
        ({"momentum": 2.0}, "momentum"),
        ({"epochs": 0}, "epochs as a whole number from 1 to 100,000, got 0"),
        ({"least_steps": 1.5}, "least_steps as a whole number from 1 to 1,000,000, got 1.5"),
        ({"adapt_rate": 2.0}, "adapt_rate"),
        ({"epochs": 10**12}, "epochs as a whole number from 1 to 100,000, got 1000000000000"),
        ({"epochs": "4"}, "epochs .* got '4'"),
        ({"epochs": True}, "epochs .* got True"),
        ({"lr": True}, "lr .* got True"),
        ({"lr": "0.1"}, "lr .* got '0.1'"),
        ({"lr": 10**400}, "lr .* got 1000"),
        ({"lr": 1e39}, "lr as a number of at least 0, got 1e"),
        (
            {"learning_rate": 0.1},
            "Expected a rate of epochs, .*lr, .*, got 'learning_rate'; choose one of these$",
        ),
        ({"momentun": 0.1}, "got 'momentun'; did you mean 'momentum'[?]$"),
        ({"batch_size": 4}, "Expected a rate of .*, got 'batch_size'; choose one of these$"),
        ({"head_start": 1.5}, "head_start as a number from 0 to 1, got 1.5"),
    ],
)
def test_training_options_are_checked(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        DEFAULTS.with_options(**options)
    assert "\n" not in str(caught.value)


def test_no_training_is_made_of_class_defaults() -> None:
    """Defaults are in the bundle, so the class has none."""
    with pytest.raises(TypeError, match="epochs"):
        Training(epochs=20)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="missing 1 required"):
        Training()  # type: ignore[call-arg]


def test_numbers_of_numpy_are_numbers() -> None:
    found = DEFAULTS.with_options(lr=np.float32(0.5), epochs=np.int64(7))  # type: ignore[arg-type]
    assert json.loads(json.dumps(found.values))["epochs"] == 7
    values = found.values
    assert (values["lr"], type(values["lr"]), type(found.epochs)) == (0.5, float, int)
