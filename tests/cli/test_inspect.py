"""The output of `lrtflite inspect`."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lrtflite.bundle.bundle import Bundle
from lrtflite.bundle.manifest import Manifest
from lrtflite.bundle.training import Rate

MakeBundle = Callable[..., Manifest]


def rows(text: str) -> dict[str, str]:
    pairs = [line.split("  ", 1) for line in text.splitlines()]
    return {name.strip(): value.strip() for name, value in pairs}


@pytest.fixture
def changed(demo: Path, tmp_path: Path) -> MakeBundle:
    """Copy the demo bundle to the folder `mine`, with a changed manifest."""

    def make(**changes: Any) -> Manifest:
        shutil.copytree(demo, tmp_path / "mine")
        manifest = replace(Bundle.open(demo).manifest, **changes)
        (tmp_path / "mine" / "manifest.json").write_text(manifest.to_json())
        return manifest

    return make


def test_a_bundle_of_the_last_layer_has_no_trunk(run_cli: Callable[..., Any], demo: Path) -> None:
    found = rows(run_cli("inspect", demo).stdout)
    assert found["latent"] == "256 float32, 1,024 bytes"
    assert found["strategy"] == "cwr, the last layer learns"
    assert not {"rate trunk_lr", "rate moment_rate", "rate adapt_rate"} & set(found)


def test_every_rate_is_there_with_its_meaning(run_cli: Callable[..., Any], demo: Path) -> None:
    found = rows(run_cli("inspect", demo).stdout)
    rates = Bundle.open(demo).manifest.rates
    assert {name for name in found if name.startswith("rate ")} == {f"rate {n}" for n in rates}
    assert len(rates) >= 4
    for name, rate in rates.items():
        assert rate.meaning
        assert found[f"rate {name}"] == f"{rate.value:g} ({rate.meaning})"


@pytest.mark.parametrize(
    ("adapts", "below"), [(True, ", moments below conv5_4/dw adapt"), (False, "")]
)
def test_a_deeper_bundle(
    run_cli: Callable[..., Any], changed: MakeBundle, demo: Path, adapts: bool, below: str
) -> None:
    feeding = replace(Bundle.open(demo).manifest.feeding, least_steps=7)
    rates = {
        "trunk_lr": Rate(0.002, meaning="of the trunk"),
        "moment_rate": Rate(0.25, meaning="of its moments"),
        "head_start": Rate(0.5),
    }
    changed(
        replay_layer="conv5_4/dw",
        strategy="ar1free",
        trains_trunk=True,
        adapt_moments=adapts,
        feeding=feeding,
        rates=rates,
    )
    found = rows(run_cli("inspect", "mine").stdout)
    assert found["replay layer"] == "conv5_4/dw"
    assert found["strategy"] == f"ar1free, all above conv5_4/dw learns{below}"
    assert found["rate trunk_lr"] == "0.002 (of the trunk)"
    assert found["rate moment_rate"] == "0.25 (of its moments)"
    assert found["rate head_start"] == "0.5"
    assert found["training"] == f"{feeding.epochs} epochs, at least 7 steps"


def test_extra_steps(run_cli: Callable[..., Any], changed: MakeBundle, demo: Path) -> None:
    feeding = replace(Bundle.open(demo).manifest.feeding, extra_steps=30, enough_loss=0.025)
    changed(feeding=feeding)
    assert rows(run_cli("inspect", "mine").stdout)["training"] == (
        "4 epochs, at least 24 steps; up to 30 extra steps, while the mean loss of a pass is 0.025 "
        "or more"
    )


def test_frames_as_latents(run_cli: Callable[..., Any], changed: MakeBundle) -> None:
    changed(
        replay_layer="images",
        input_size=4,
        latent_shape=(4, 4, 3),
        latent_dtype="uint8",
        train_dtype="uint8",
        trains_trunk=True,
    )
    assert rows(run_cli("inspect", "mine").stdout)["latent"] == "4 x 4 x 3 uint8, 48 bytes"
