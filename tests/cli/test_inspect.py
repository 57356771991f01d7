"""`lrtflite inspect`: what is said of a bundle, and what is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fake_bundle import make_bundle
from learning import DEFAULTS


def rows(text: str) -> dict[str, str]:
    pairs = [line.split("  ", 1) for line in text.splitlines()]
    return {name.strip(): value.strip() for name, value in pairs}


def test_a_bundle_of_the_last_layer_has_no_trunk(run_cli: Callable[..., Any], demo: Path) -> None:
    found = rows(run_cli("inspect", demo).stdout)
    assert found["latent"] == "256 float32, 1,024 bytes"
    assert not {"trunk", "moments"} & set(found)


@pytest.mark.parametrize(("adapts", "below"), [(True, "rate 0.5"), (False, "frozen")])
def test_a_deeper_bundle(
    run_cli: Callable[..., Any], tmp_path: Path, adapts: bool, below: str
) -> None:
    training = DEFAULTS.with_options(
        trunk_lr=0.002, moment_rate=0.25, adapt_rate=0.5, least_steps=7, head_start=0.5
    )
    make_bundle(tmp_path / "deep", training=training, adapt_moments=adapts)
    found = rows(run_cli("inspect", "deep").stdout)
    assert found["replay layer"] == "conv5_4/dw"
    assert found["trunk"] == "all above conv5_4/dw trains, lr 0.002"
    assert found["moments"] == f"rate 0.25 above conv5_4/dw, {below} below it"
    assert found["training"].startswith(f"{training.epochs} epochs, at least 7 steps, lr ")
    assert found["training"].endswith(", head start 0.5")


def test_frames_as_latents(run_cli: Callable[..., Any], tmp_path: Path) -> None:
    make_bundle(tmp_path / "b", replay_layer="images", latent_dtype="uint8", adapt_moments=False)
    assert rows(run_cli("inspect", "b").stdout)["latent"] == "4 x 4 x 3 uint8, 48 bytes"
