"""What a manifest says of training and of latents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from learning import DEFAULTS
from lrtflite.bundle import Bundle
from lrtflite.errors import BundleError, InputError
from lrtflite.manifest import Manifest, Training

TRAINING = DEFAULTS.with_options(
    lr=0.5, momentum=0.25, weight_decay=0.125, trunk_lr=2.0, moment_rate=0.75
)


@pytest.fixture
def fields(demo: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((demo / "manifest.json").read_text())
    return found


def read(fields: dict[str, Any], **changes: Any) -> Manifest:
    return Manifest.from_json(json.dumps({**fields, **changes}), where="here")


def test_a_signature_gets_exactly_the_rates_that_it_lists() -> None:
    last_layer = {"latents": 0, "targets": 0, "lr": 0, "momentum": 0, "weight_decay": 0}
    assert TRAINING.inputs(last_layer) == {"lr": 0.5, "momentum": 0.25, "weight_decay": 0.125}
    deeper = {**last_layer, "trunk_lr": 0, "moment_rate": 0}
    all_five = {**TRAINING.inputs(last_layer), "trunk_lr": 2.0, "moment_rate": 0.75}
    assert TRAINING.inputs(deeper) == all_five
    assert TRAINING.inputs({"counts": 0, "head_start": 0}) == {"head_start": 1.0}
    assert all(
        value.dtype == np.float32 and value.shape == (1,)
        for value in TRAINING.inputs(deeper).values()
    )


def test_options_that_are_given_win() -> None:
    changed = TRAINING.with_options(trunk_lr=0.0, epochs=3)
    assert (changed.lr, changed.trunk_lr, changed.epochs) == (0.5, 0.0, 3)
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
        ({"learning_rate": 0.1}, "Expected options of lr, .*, got 'learning_rate'"),
        ({"head_start": 1.5}, "head_start as a number from 0 to 1, got 1.5"),
    ],
)
def test_training_options_are_checked(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        DEFAULTS.with_options(**options)


def test_no_training_is_made_of_class_defaults() -> None:
    """Rates that nobody names are the bundle's, so there is no other way to get a Training."""
    with pytest.raises(TypeError, match="missing 8 required"):
        Training(epochs=20)  # type: ignore[call-arg]


def test_numbers_of_numpy_are_numbers() -> None:
    found = DEFAULTS.with_options(lr=np.float32(0.5), epochs=np.int64(7))  # type: ignore[arg-type]
    assert json.loads(json.dumps(vars(found)))["epochs"] == 7
    assert (found.lr, type(found.lr), type(found.epochs)) == (0.5, float, int)


def test_bytes_of_a_latent_follow_its_dtype(fields: dict[str, Any]) -> None:
    # The paper's 1500 latents at conv5_4/dw are 196.6 MB in float32.
    deep = read(fields, latent_shape=[8, 8, 512], replay_layer="conv5_4/dw")
    assert 1500 * deep.latent_bytes == 196_608_000
    images = read(fields, latent_shape=[128, 128, 3], latent_dtype="uint8", replay_layer="images")
    assert images.latent_bytes == 49_152
    assert deep.trains_trunk
    assert images.trains_trunk
    assert not read(fields).trains_trunk


def test_moments_stay_unless_said(demo: Path, fields: dict[str, Any]) -> None:
    assert Bundle.open(demo).manifest.adapt_moments is False
    assert read(fields, adapt_moments=True).adapt_moments is True


def test_fields_that_cannot_be(fields: dict[str, Any]) -> None:
    older = {k: v for k, v in fields["training"].items() if k != "trunk_lr"}
    for changes, said in (
        ({"latent_dtype": "float16"}, "latent_dtype is 'float16'"),
        ({"latent_dtype": 4}, "latent_dtype is 4"),
        ({"adapt_moments": "no"}, "adapt_moments is 'no'"),
        ({"training": older}, "training has or lacks trunk_lr"),
        ({"training": {**fields["training"], "decay": 1}}, "training has or lacks decay"),
        ({"training": {**fields["training"], "moment_rate": 7}}, "moment_rate"),
    ):
        with pytest.raises(BundleError, match=f"Damaged field in here: .*{said}"):
            read(fields, **changes)
