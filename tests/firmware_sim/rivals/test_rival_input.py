"""Options, bundles and streams that a rival cannot work with: one line, before any work."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fake_bundle import make_bundle
from lrtflite.bundle.bundle import Bundle
from lrtflite.errors import InputError
from lrtflite.options import LearnerOptions
from lrtflite_firmware_sim import SimulateOptions, simulate
from lrtflite_firmware_sim.plan import make_plan


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rival": "icarll"}, "cumulative, icarl, got 'icarll'; did you mean 'icarl'?"),
        ({"rival": "x"}, "Expected a rival of cumulative, icarl, got 'x'; choose one of these"),
        (
            {"rival": "icarl", "learner": LearnerOptions(policy="balanced")},
            "rival icarl, which has its own (herding), got --policy balanced; leave it out",
        ),
        (
            {"rival": "cumulative", "learner": LearnerOptions(replay_size=5)},
            "rival cumulative, which keeps every latent, got --replay-size 5; leave it out",
        ),
        (
            {"rival": "icarl", "rates": {"lr": 0.1, "epochs": 3}},
            "rival icarl, which does not train, got rates (lr, epochs); leave it out",
        ),
        (
            {"rival": "icarl", "diagnose": True},
            "rival icarl, which cannot explain its answers, got --diagnose; leave it out",
        ),
    ],
)
def test_options_that_do_not_apply(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        SimulateOptions(**given)
    assert said in str(caught.value)


def test_rates_of_the_bundle_are_not_those_of_a_rival(demo: Path) -> None:
    manifest = Bundle.open(demo).manifest
    options = SimulateOptions(rival="cumulative", rates={"head_start": 0.5})
    with pytest.raises(InputError, match="lr, momentum, weight_decay, got 'head_start'"):
        make_plan(manifest, options)
    plan = make_plan(manifest, replace(options, rates={"epochs": 7, "lr": 0.5}))
    assert plan.rates.items() >= {"epochs": 7, "lr": 0.5}.items()


@pytest.mark.parametrize("rival", ["cumulative", "icarl"])
def test_a_bundle_with_a_trunk(rival: str, tmp_path: Path) -> None:
    bundle = make_bundle(tmp_path / "deep", adapt_moments=False)
    with pytest.raises(InputError) as caught:
        simulate(bundle, SimulateOptions(rival=rival))
    assert str(caught.value) == (
        "Expected a bundle whose latents are vectors and whose head has no trunk for the rival "
        f"{rival}, got latents of 4 x 4 x 3 at conv5_4/dw; convert one with --pooled, or "
        "without --replay-layer"
    )


def test_features_that_change_and_classes_that_are_known(demo: Path) -> None:
    manifest, options = Bundle.open(demo).manifest, SimulateOptions(rival="icarl")
    with pytest.raises(InputError, match=r"frozen features .* without --adapt-moments"):
        make_plan(replace(manifest, adapt_moments=True), options)
    with pytest.raises(InputError, match="starts from nothing, got one that knows 2"):
        make_plan(manifest, options, known=("mug", "cup"))


def test_a_memory_that_is_too_small_for_the_stream(demo: Path) -> None:
    manifest = Bundle.open(demo).manifest
    # Ten classes at once, then 90 sessions of one class.
    options = SimulateOptions(rival="icarl", learner=LearnerOptions(replay_size=99))
    with pytest.raises(
        InputError, match=r"at least 100 for the rival icarl, .*91 sessions, got 99"
    ):
        make_plan(manifest, options)
    assert make_plan(manifest, replace(options, sessions=90)).learner.replay_size == 99
